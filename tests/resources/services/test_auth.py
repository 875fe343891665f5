import pytest

from neonctl_async import Secret
from neonctl_async.types import (
    AuthIntegration,
    AuthKeys,
    AuthTrustedDomain,
    AuthUser,
    OAuthProvider,
)
from tests.models.services.auth_records import DOMAIN, INTEGRATION, KEYS, OAUTH_PROVIDER
from tests.resources.wire import Call, Response, no_content, record, records_in, responding_with

PATH = "/projects/p-1/branches/br-1/auth"
BETTER_AUTH = "better_auth"
SECRET = "hunter2"
APPLICATION = {"client_id": "id-1", "client_secret": SECRET}
USER = record(AuthUser, {"id": "user-1"}, 201)
PROVIDER = record(OAuthProvider, {**OAUTH_PROVIDER, "type": "standard", **APPLICATION})
EMPTY = Response({}, None)

CALLS = [
    Call(
        lambda neon: neon.auth.get("p-1", "br-1"),
        f"GET {PATH}",
        record(AuthIntegration, INTEGRATION),
    ),
    Call(
        lambda neon: neon.auth.enable("p-1", "br-1", auth_provider=BETTER_AUTH),
        f"POST {PATH}",
        record(AuthKeys, KEYS, 201),
        body={"auth_provider": "better_auth"},
    ),
    Call(
        lambda neon: neon.auth.enable(
            "p-1", "br-1", auth_provider=BETTER_AUTH, database_name="shop"
        ),
        f"POST {PATH}",
        record(AuthKeys, {**KEYS, "base_url": "https://auth.example.com"}, 201),
        body={"auth_provider": "better_auth", "database_name": "shop"},
    ),
    Call(lambda neon: neon.auth.disable("p-1", "br-1"), f"DELETE {PATH}", EMPTY),
    Call(
        lambda neon: neon.auth.disable("p-1", "br-1", delete_data=True),
        f"DELETE {PATH}",
        EMPTY,
        body={"delete_data": True},
    ),
    Call(
        lambda neon: neon.auth.create_user("p-1", "br-1", email="ada@example.com"),
        f"POST {PATH}/users",
        USER,
        body={"email": "ada@example.com"},
    ),
    Call(
        lambda neon: neon.auth.create_user("p-1", "br-1", email="ada@example.com", name="Ada"),
        f"POST {PATH}/users",
        USER,
        body={"email": "ada@example.com", "name": "Ada"},
    ),
    Call(
        lambda neon: neon.auth.update_user_roles("p-1", "br-1", "user-1", roles=("admin", "buyer")),
        f"PUT {PATH}/users/user-1/role",
        record(AuthUser, {"id": "user-1"}),
        body={"roles": ["admin", "buyer"]},
    ),
    Call(
        lambda neon: neon.auth.delete_user("p-1", "br-1", "user-1"),
        f"DELETE {PATH}/users/user-1",
        no_content(),
    ),
    Call(
        lambda neon: neon.auth.list_oauth_providers("p-1", "br-1"),
        f"GET {PATH}/oauth_providers",
        records_in("providers", OAuthProvider, OAUTH_PROVIDER),
    ),
    Call(
        lambda neon: neon.auth.add_oauth_provider("p-1", "br-1", id="google"),
        f"POST {PATH}/oauth_providers",
        record(OAuthProvider, OAUTH_PROVIDER),
        body={"id": "google"},
    ),
    Call(
        lambda neon: neon.auth.add_oauth_provider(
            "p-1",
            "br-1",
            id="microsoft",
            client_id="id-1",
            client_secret=Secret(SECRET),
            microsoft_tenant_id="tenant-1",
        ),
        f"POST {PATH}/oauth_providers",
        PROVIDER,
        body={"id": "microsoft", **APPLICATION, "microsoft_tenant_id": "tenant-1"},
    ),
    Call(
        lambda neon: neon.auth.update_oauth_provider("p-1", "br-1", "google", client_secret=SECRET),
        f"PATCH {PATH}/oauth_providers/google",
        PROVIDER,
        body={"client_secret": SECRET},
    ),
    Call(
        lambda neon: neon.auth.update_oauth_provider(
            "p-1", "br-1", "microsoft", client_id="id-1", microsoft_tenant_id="tenant-1"
        ),
        f"PATCH {PATH}/oauth_providers/microsoft",
        PROVIDER,
        body={"client_id": "id-1", "microsoft_tenant_id": "tenant-1"},
    ),
    Call(
        lambda neon: neon.auth.delete_oauth_provider("p-1", "br-1", "google"),
        f"DELETE {PATH}/oauth_providers/google",
        EMPTY,
    ),
    Call(
        lambda neon: neon.auth.list_trusted_domains("p-1", "br-1"),
        f"GET {PATH}/domains",
        records_in("domains", AuthTrustedDomain, DOMAIN),
    ),
    Call(
        lambda neon: neon.auth.add_trusted_domain(
            "p-1", "br-1", domain="https://a.example.com", auth_provider=BETTER_AUTH
        ),
        f"POST {PATH}/domains",
        Response({}, None, 201),
        body={"domain": "https://a.example.com", "auth_provider": "better_auth"},
    ),
    Call(
        lambda neon: neon.auth.delete_trusted_domains(
            "p-1",
            "br-1",
            domains=("https://a.example.com", "https://b.example.com"),
            auth_provider=BETTER_AUTH,
        ),
        f"DELETE {PATH}/domains",
        EMPTY,
        body={
            "domains": [{"domain": "https://a.example.com"}, {"domain": "https://b.example.com"}],
            "auth_provider": "better_auth",
        },
    ),
    Call(
        lambda neon: neon.auth.create_keys(project_id="p-1", auth_provider="stack"),
        "POST /projects/auth/keys",
        record(AuthKeys, {**KEYS, "pub_client_key": "pck_1", "secret_server_key": "ssk_1"}, 201),
        body={"project_id": "p-1", "auth_provider": "stack"},
    ),
    Call(
        lambda neon: neon.auth.transfer_ownership(project_id="p-1", auth_provider="stack"),
        "POST /projects/auth/transfer_ownership",
        Response({"url": "https://a.example.com"}, Secret("https://a.example.com")),
        body={"project_id": "p-1", "auth_provider": "stack"},
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_request_and_result(call: Call) -> None:
    await call.check()


async def test_single_text_is_no_list_of_domains() -> None:
    async with responding_with() as exchange:
        with pytest.raises(TypeError, match=r"domains is .*: expected a list"):
            await exchange.neon.auth.delete_trusted_domains(
                "p-1", "br-1", domains="https://a.example.com", auth_provider=BETTER_AUTH
            )
        assert exchange.all_sent == []
