"""Every method of Neon Auth, called by a user: never run, checked by ``make dist``."""

from typing import assert_type

from neonctl_async import NeonClient, Secret, types

PROJECT, BRANCH, USER, URL = "late-frost-12345678", "br-1", "user-1", "https://example.com"
BETTER_AUTH = types.AuthProvider.BETTER_AUTH


async def integration(neon: NeonClient) -> None:
    assert_type(await neon.auth.get(PROJECT, BRANCH), types.AuthIntegration)
    assert_type(await neon.auth.enable(PROJECT, BRANCH, auth_provider=BETTER_AUTH), types.AuthKeys)
    await neon.auth.disable(PROJECT, BRANCH, delete_data=True)
    assert_type(
        await neon.auth.create_keys(project_id=PROJECT, auth_provider="stack"), types.AuthKeys
    )
    assert_type(
        await neon.auth.transfer_ownership(project_id=PROJECT, auth_provider="stack"), Secret
    )
    assert_type(await neon.auth.update_config(PROJECT, BRANCH, name="Shop"), types.AuthConfig)


async def users(neon: NeonClient) -> None:
    assert_type(await neon.auth.create_user(PROJECT, BRANCH, email="email"), types.AuthUser)
    assert_type(
        await neon.auth.update_user_roles(PROJECT, BRANCH, USER, roles=["admin"]), types.AuthUser
    )
    await neon.auth.delete_user(PROJECT, BRANCH, USER)


async def oauth_providers(neon: NeonClient) -> None:
    assert_type(await neon.auth.list_oauth_providers(PROJECT, BRANCH), list[types.OAuthProvider])
    assert_type(
        await neon.auth.add_oauth_provider(
            PROJECT, BRANCH, id=types.OAuthProviderId.GOOGLE, client_secret=Secret("secret")
        ),
        types.OAuthProvider,
    )
    assert_type(
        await neon.auth.update_oauth_provider(PROJECT, BRANCH, "google", client_secret="secret"),
        types.OAuthProvider,
    )
    await neon.auth.delete_oauth_provider(PROJECT, BRANCH, "google")


async def domains(neon: NeonClient) -> None:
    assert_type(
        await neon.auth.list_trusted_domains(PROJECT, BRANCH), list[types.AuthTrustedDomain]
    )
    await neon.auth.add_trusted_domain(PROJECT, BRANCH, domain=URL, auth_provider=BETTER_AUTH)
    await neon.auth.delete_trusted_domains(
        PROJECT, BRANCH, domains=[URL], auth_provider=BETTER_AUTH
    )
    assert_type(await neon.auth.get_allow_localhost(PROJECT, BRANCH), bool)
    assert_type(await neon.auth.update_allow_localhost(PROJECT, BRANCH, allow_localhost=True), bool)


async def emails(neon: NeonClient) -> None:
    assert_type(await neon.auth.get_email_and_password(PROJECT, BRANCH), types.AuthEmailAndPassword)
    assert_type(
        await neon.auth.update_email_and_password(PROJECT, BRANCH, enabled=True),
        types.AuthEmailAndPassword,
    )
    assert_type(await neon.auth.get_email_provider(PROJECT, BRANCH), types.AuthEmailProvider)
    assert_type(
        await neon.auth.update_email_provider(
            PROJECT, BRANCH, type="standard", host="host", port=587, password=Secret("password")
        ),
        types.AuthEmailProvider,
    )
    assert_type(
        await neon.auth.test_email_provider(PROJECT, BRANCH, recipient_email="email"),
        types.AuthTestEmail,
    )


async def plugins(neon: NeonClient) -> None:
    assert_type(await neon.auth.get_plugins(PROJECT, BRANCH), types.AuthPlugins)
    assert_type(
        await neon.auth.update_organization_plugin(PROJECT, BRANCH, membership_limit=5),
        types.AuthOrganizationPlugin,
    )
    assert_type(
        await neon.auth.update_magic_link_plugin(PROJECT, BRANCH, expires_in=15),
        types.AuthMagicLinkPlugin,
    )
    assert_type(
        await neon.auth.get_phone_number_plugin(PROJECT, BRANCH), types.AuthPhoneNumberPlugin
    )
    assert_type(
        await neon.auth.update_phone_number_plugin(PROJECT, BRANCH, otp_expires_in=60),
        types.AuthPhoneNumberPlugin,
    )


async def webhook(neon: NeonClient) -> None:
    assert_type(await neon.auth.get_webhook(PROJECT, BRANCH), types.AuthWebhook)
    assert_type(
        await neon.auth.update_webhook(
            PROJECT,
            BRANCH,
            enabled=True,
            webhook_url=URL,
            enabled_events=[types.AuthWebhookEvent.USER_CREATED, "send.otp"],
        ),
        types.AuthWebhook,
    )
