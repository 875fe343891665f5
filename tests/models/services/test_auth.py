from neonctl_async.types import AuthIntegration, AuthKeys, AuthProvider, OAuthProvider
from tests.models.records import AT_NOON, decode
from tests.models.services.auth_records import INTEGRATION, KEYS, OAUTH_PROVIDER


def test_integration_has_its_provider_and_time() -> None:
    integration = decode(AuthIntegration, INTEGRATION)
    assert integration.auth_provider is AuthProvider.BETTER_AUTH
    assert (integration.created_at, integration.transfer_status) == (AT_NOON, None)


def test_keys_of_better_auth_are_empty() -> None:
    keys = decode(AuthKeys, KEYS)
    assert not keys.pub_client_key
    assert not keys.secret_server_key


def test_new_oauth_provider_is_kept_as_its_name() -> None:
    provider = decode(OAuthProvider, {**OAUTH_PROVIDER, "id": "gitlab"})
    assert provider.id == "gitlab"
    assert not provider.id.is_known
