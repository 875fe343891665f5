"""Neon Auth on a branch: users, sign-in providers, domains and settings."""

from collections.abc import Sequence
from typing import Literal

from msgspec import UNSET, UnsetType

from neonctl_async.models.base import Empty
from neonctl_async.models.secret import Secret, sent_secret
from neonctl_async.models.services.auth import (
    AuthConfig,
    AuthEmailAndPassword,
    AuthEmailProvider,
    AuthEmailProviderType,
    AuthIntegration,
    AuthKeys,
    AuthLocalhost,
    AuthMagicLinkPlugin,
    AuthOrganizationPlugin,
    AuthPhoneNumberPlugin,
    AuthPlugins,
    AuthTestEmail,
    AuthTransferResponse,
    AuthTrustedDomain,
    AuthTrustedDomainsResponse,
    AuthUser,
    AuthWebhook,
    OAuthProvider,
    OAuthProvidersResponse,
)
from neonctl_async.resources.base import Resource, as_list, drop_unset

_AUTH = "/projects/{project_id}/branches/{branch_id}/auth"
_ALLOW_LOCALHOST = f"{_AUTH}/allow_localhost"
_EMAIL_AND_PASSWORD = f"{_AUTH}/email_and_password"
_EMAIL_PROVIDER = f"{_AUTH}/email_provider"
_PLUGINS = f"{_AUTH}/plugins"
_MAGIC_LINK = f"{_PLUGINS}/magic-link"
_ORGANIZATION = f"{_PLUGINS}/organization"
_PHONE_NUMBER = f"{_PLUGINS}/phone-number"
_WEBHOOK = f"{_AUTH}/webhooks"
_DOMAINS = f"{_AUTH}/domains"
_OAUTH_PROVIDERS = f"{_AUTH}/oauth_providers"
_OAUTH_PROVIDER = f"{_OAUTH_PROVIDERS}/{{oauth_provider_id}}"
_USERS = f"{_AUTH}/users"
_USER = f"{_USERS}/{{auth_user_id}}"


class Auth(Resource):
    """Neon Auth on a branch: users, sign-in providers, domains and settings.

    ``auth_provider`` is an :class:`AuthProvider`; use ``"better_auth"`` for new integrations.
    Omitted settings keep their values, except in :meth:`update_webhook`.
    """

    async def get(self, project_id: str, branch_id: str) -> AuthIntegration:
        """Return the integration. Raises NotFoundError if Neon Auth is not enabled.

        Beta: Neon may change this endpoint.
        """
        return await self._send("GET", _AUTH, AuthIntegration, project_id, branch_id)

    async def enable(
        self,
        project_id: str,
        branch_id: str,
        *,
        auth_provider: str,
        database_name: str | UnsetType = UNSET,
    ) -> AuthKeys:
        """Enable Neon Auth for a branch.

        Neon creates the ``neon_auth`` schema, which contains the users, by default in the project's
        default database.

        Beta: Neon may change this endpoint.
        """
        body = drop_unset(auth_provider=auth_provider, database_name=database_name)
        return await self._send("POST", _AUTH, AuthKeys, project_id, branch_id, body=body)

    async def disable(
        self, project_id: str, branch_id: str, *, delete_data: bool | UnsetType = UNSET
    ) -> None:
        """Disable Neon Auth for a branch.

        With ``delete_data``, Neon also deletes the ``neon_auth`` schema with all users.

        Beta: Neon may change this endpoint.
        """
        body = drop_unset(delete_data=delete_data) or UNSET
        await self._send("DELETE", _AUTH, Empty, project_id, branch_id, body=body)

    async def create_user(
        self, project_id: str, branch_id: str, *, email: str, name: str | UnsetType = UNSET
    ) -> AuthUser:
        """Create a user, who can sign in at once. ``name`` is the display name.

        Beta: Neon may change this endpoint.
        """
        body = drop_unset(email=email, name=name)
        return await self._send("POST", _USERS, AuthUser, project_id, branch_id, body=body)

    async def update_user_roles(
        self, project_id: str, branch_id: str, auth_user_id: str, *, roles: Sequence[str]
    ) -> AuthUser:
        """Replace the roles of a user: ``user``, ``admin``, or roles of your own."""
        body = drop_unset(roles=as_list("roles", roles))
        return await self._send(
            "PUT", f"{_USER}/role", AuthUser, project_id, branch_id, auth_user_id, body=body
        )

    async def delete_user(self, project_id: str, branch_id: str, auth_user_id: str) -> None:
        """Delete a user permanently.

        Beta: Neon may change this endpoint.
        """
        await self._send("DELETE", _USER, Empty, project_id, branch_id, auth_user_id)

    async def list_oauth_providers(self, project_id: str, branch_id: str) -> list[OAuthProvider]:
        """Return the OAuth providers that users can sign in with.

        Beta: Neon may change this endpoint.
        """
        response = await self._send(
            "GET", _OAUTH_PROVIDERS, OAuthProvidersResponse, project_id, branch_id
        )
        return response.providers

    async def add_oauth_provider(
        self,
        project_id: str,
        branch_id: str,
        *,
        id: str,
        client_id: str | UnsetType = UNSET,
        client_secret: str | Secret | UnsetType = UNSET,
        microsoft_tenant_id: str | UnsetType = UNSET,
    ) -> OAuthProvider:
        """Add an OAuth provider. ``id`` is an :class:`OAuthProviderId`.

        Without ``client_id`` and ``client_secret``, users sign in with Neon's own application,
        which exists for ``google`` and ``github``.

        ``microsoft_tenant_id`` is for ``microsoft`` only.

        Beta: Neon may change this endpoint.
        """
        client_secret = sent_secret(client_secret)
        body = drop_unset(
            id=id,
            client_id=client_id,
            client_secret=client_secret,
            microsoft_tenant_id=microsoft_tenant_id,
        )
        return await self._send(
            "POST", _OAUTH_PROVIDERS, OAuthProvider, project_id, branch_id, body=body
        )

    async def update_oauth_provider(
        self,
        project_id: str,
        branch_id: str,
        oauth_provider_id: str,
        *,
        client_id: str | UnsetType = UNSET,
        client_secret: str | Secret | UnsetType = UNSET,
        microsoft_tenant_id: str | UnsetType = UNSET,
    ) -> OAuthProvider:
        """Change the OAuth application of a provider. Omitted settings keep their values.

        Beta: Neon may change this endpoint.
        """
        client_secret = sent_secret(client_secret)
        body = drop_unset(
            client_id=client_id,
            client_secret=client_secret,
            microsoft_tenant_id=microsoft_tenant_id,
        )
        return await self._send(
            "PATCH",
            _OAUTH_PROVIDER,
            OAuthProvider,
            project_id,
            branch_id,
            oauth_provider_id,
            body=body,
        )

    async def delete_oauth_provider(
        self, project_id: str, branch_id: str, oauth_provider_id: str
    ) -> None:
        """Delete an OAuth provider. Users can no longer sign in with it.

        Beta: Neon may change this endpoint.
        """
        await self._send("DELETE", _OAUTH_PROVIDER, Empty, project_id, branch_id, oauth_provider_id)

    async def list_trusted_domains(
        self, project_id: str, branch_id: str
    ) -> list[AuthTrustedDomain]:
        """Return the domains to which users may be redirected after signing in.

        Beta: Neon may change this endpoint.
        """
        response = await self._send(
            "GET", _DOMAINS, AuthTrustedDomainsResponse, project_id, branch_id
        )
        return response.domains

    async def add_trusted_domain(
        self, project_id: str, branch_id: str, *, domain: str, auth_provider: str
    ) -> None:
        """Trust a domain, a URL such as ``https://app.example.com``.

        Beta: Neon may change this endpoint.
        """
        body = drop_unset(domain=domain, auth_provider=auth_provider)
        await self._send("POST", _DOMAINS, Empty, project_id, branch_id, body=body)

    async def delete_trusted_domains(
        self, project_id: str, branch_id: str, *, domains: Sequence[str], auth_provider: str
    ) -> None:
        """Stop trusting domains.

        Beta: Neon may change this endpoint.
        """
        items = [{"domain": domain} for domain in as_list("domains", domains)]
        body = drop_unset(domains=items, auth_provider=auth_provider)
        await self._send("DELETE", _DOMAINS, Empty, project_id, branch_id, body=body)

    async def create_keys(self, *, project_id: str, auth_provider: str) -> AuthKeys:
        """Create keys for the SDKs of a project's auth provider."""
        body = drop_unset(project_id=project_id, auth_provider=auth_provider)
        return await self._send("POST", "/projects/auth/keys", AuthKeys, body=body)

    async def transfer_ownership(self, *, project_id: str, auth_provider: str) -> Secret:
        """Start transferring the project at the auth provider to your own account there.

        Open the URL in the result to finish the transfer. Anyone who knows the URL can do so.
        """
        body = drop_unset(project_id=project_id, auth_provider=auth_provider)
        response = await self._send(
            "POST", "/projects/auth/transfer_ownership", AuthTransferResponse, body=body
        )
        return response.url

    async def update_config(self, project_id: str, branch_id: str, *, name: str) -> AuthConfig:
        """Change the name of the application in emails."""
        body = drop_unset(name=name)
        return await self._send(
            "PATCH", f"{_AUTH}/config", AuthConfig, project_id, branch_id, body=body
        )

    async def get_allow_localhost(self, project_id: str, branch_id: str) -> bool:
        """Return whether pages on ``localhost`` are trusted, like those of a trusted domain."""
        response = await self._send("GET", _ALLOW_LOCALHOST, AuthLocalhost, project_id, branch_id)
        return response.allow_localhost

    async def update_allow_localhost(
        self, project_id: str, branch_id: str, *, allow_localhost: bool
    ) -> bool:
        """Change whether pages on ``localhost`` are trusted. Return the new setting."""
        body = drop_unset(allow_localhost=allow_localhost)
        response = await self._send(
            "PATCH", _ALLOW_LOCALHOST, AuthLocalhost, project_id, branch_id, body=body
        )
        return response.allow_localhost

    async def get_email_and_password(self, project_id: str, branch_id: str) -> AuthEmailAndPassword:
        """Return the settings for signing in with an email address and a password."""
        return await self._send(
            "GET", _EMAIL_AND_PASSWORD, AuthEmailAndPassword, project_id, branch_id
        )

    async def update_email_and_password(
        self,
        project_id: str,
        branch_id: str,
        *,
        enabled: bool | UnsetType = UNSET,
        email_verification_method: str | UnsetType = UNSET,
        require_email_verification: bool | UnsetType = UNSET,
        auto_sign_in_after_verification: bool | UnsetType = UNSET,
        send_verification_email_on_sign_up: bool | UnsetType = UNSET,
        send_verification_email_on_sign_in: bool | UnsetType = UNSET,
        disable_sign_up: bool | UnsetType = UNSET,
    ) -> AuthEmailAndPassword:
        """Change the settings for signing in with an email address and a password.

        ``email_verification_method`` is an :class:`AuthEmailVerificationMethod`. See
        :class:`AuthEmailAndPassword` for the other settings.
        """
        body = drop_unset(
            enabled=enabled,
            email_verification_method=email_verification_method,
            require_email_verification=require_email_verification,
            auto_sign_in_after_verification=auto_sign_in_after_verification,
            send_verification_email_on_sign_up=send_verification_email_on_sign_up,
            send_verification_email_on_sign_in=send_verification_email_on_sign_in,
            disable_sign_up=disable_sign_up,
        )
        return await self._send(
            "PATCH", _EMAIL_AND_PASSWORD, AuthEmailAndPassword, project_id, branch_id, body=body
        )

    async def get_email_provider(self, project_id: str, branch_id: str) -> AuthEmailProvider:
        """Return the server that sends the emails."""
        return await self._send("GET", _EMAIL_PROVIDER, AuthEmailProvider, project_id, branch_id)

    async def update_email_provider(
        self,
        project_id: str,
        branch_id: str,
        *,
        type: AuthEmailProviderType | Literal["standard", "shared"],
        host: str | UnsetType = UNSET,
        port: int | UnsetType = UNSET,
        username: str | UnsetType = UNSET,
        password: str | Secret | UnsetType = UNSET,
        sender_email: str | UnsetType = UNSET,
        sender_name: str | UnsetType = UNSET,
    ) -> AuthEmailProvider:
        """Change the server that sends the emails.

        A ``shared`` provider takes only ``sender_email`` and ``sender_name``. With Stack Auth, a
        ``standard`` provider needs every setting.
        """
        password = sent_secret(password)
        body = drop_unset(
            type=type,
            host=host,
            port=port,
            username=username,
            password=password,
            sender_email=sender_email,
            sender_name=sender_name,
        )
        return await self._send(
            "PATCH", _EMAIL_PROVIDER, AuthEmailProvider, project_id, branch_id, body=body
        )

    async def test_email_provider(
        self, project_id: str, branch_id: str, *, recipient_email: str
    ) -> AuthTestEmail:
        """Send a test email with the ``standard`` email provider of a branch.

        An error of the email server is part of the result, not an exception.
        """
        body = drop_unset(recipient_email=recipient_email)
        return await self._send(
            "POST", f"{_EMAIL_PROVIDER}/test", AuthTestEmail, project_id, branch_id, body=body
        )

    async def get_plugins(self, project_id: str, branch_id: str) -> AuthPlugins:
        """Return the settings of all plugins, the email server and the sign-in providers."""
        return await self._send("GET", _PLUGINS, AuthPlugins, project_id, branch_id)

    async def update_organization_plugin(
        self,
        project_id: str,
        branch_id: str,
        *,
        enabled: bool | UnsetType = UNSET,
        organization_limit: int | UnsetType = UNSET,
        membership_limit: int | UnsetType = UNSET,
        creator_role: str | UnsetType = UNSET,
        send_invitation_email: bool | UnsetType = UNSET,
    ) -> AuthOrganizationPlugin:
        """Change the settings of the plugin that lets users form organizations.

        ``creator_role`` is an :class:`AuthOrganizationRole`. Both limits are at least 1.
        """
        body = drop_unset(
            enabled=enabled,
            organization_limit=organization_limit,
            membership_limit=membership_limit,
            creator_role=creator_role,
            send_invitation_email=send_invitation_email,
        )
        return await self._send(
            "PATCH", _ORGANIZATION, AuthOrganizationPlugin, project_id, branch_id, body=body
        )

    async def update_magic_link_plugin(
        self,
        project_id: str,
        branch_id: str,
        *,
        enabled: bool | UnsetType = UNSET,
        expires_in: int | UnsetType = UNSET,
        disable_sign_up: bool | UnsetType = UNSET,
    ) -> AuthMagicLinkPlugin:
        """Change the settings for signing in with a link in an email.

        ``expires_in`` is the lifetime of a link in minutes, 5 to 1440.
        """
        body = drop_unset(enabled=enabled, expires_in=expires_in, disable_sign_up=disable_sign_up)
        return await self._send(
            "PATCH", _MAGIC_LINK, AuthMagicLinkPlugin, project_id, branch_id, body=body
        )

    async def get_phone_number_plugin(
        self, project_id: str, branch_id: str
    ) -> AuthPhoneNumberPlugin:
        """Return the settings for signing in with a code that is sent to a phone."""
        return await self._send("GET", _PHONE_NUMBER, AuthPhoneNumberPlugin, project_id, branch_id)

    async def update_phone_number_plugin(
        self,
        project_id: str,
        branch_id: str,
        *,
        enabled: bool | UnsetType = UNSET,
        otp_expires_in: int | UnsetType = UNSET,
    ) -> AuthPhoneNumberPlugin:
        """Change the settings for signing in with a code that is sent to a phone.

        ``otp_expires_in`` is the lifetime of a code in seconds, 60 to 600. Your webhook sends the
        codes: enable its ``send.otp`` event.
        """
        body = drop_unset(enabled=enabled, otp_expires_in=otp_expires_in)
        return await self._send(
            "PATCH", _PHONE_NUMBER, AuthPhoneNumberPlugin, project_id, branch_id, body=body
        )

    async def get_webhook(self, project_id: str, branch_id: str) -> AuthWebhook:
        """Return the webhook that receives the events of Neon Auth."""
        return await self._send("GET", _WEBHOOK, AuthWebhook, project_id, branch_id)

    async def update_webhook(
        self,
        project_id: str,
        branch_id: str,
        *,
        enabled: bool,
        webhook_url: str | UnsetType = UNSET,
        enabled_events: Sequence[str] | UnsetType = UNSET,
        timeout_seconds: int | UnsetType = UNSET,
    ) -> AuthWebhook:
        """Replace the webhook that receives the events of Neon Auth.

        ``enabled_events`` is a list of :class:`AuthWebhookEvent`. The receiver must respond within
        ``timeout_seconds``, 1 to 10.
        """
        body = drop_unset(
            enabled=enabled,
            webhook_url=webhook_url,
            enabled_events=as_list("enabled_events", enabled_events),
            timeout_seconds=timeout_seconds,
        )
        return await self._send("PUT", _WEBHOOK, AuthWebhook, project_id, branch_id, body=body)
