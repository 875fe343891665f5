import pytest

from neonctl_async.types import (
    AuthEmailProvider,
    AuthEmailProviderType,
    AuthPlugins,
    AuthWebhook,
    AuthWebhookEvent,
)
from tests.models.records import JsonObject, decode

SENDER: JsonObject = {"sender_email": "ada@example.com", "sender_name": "Ada"}
SERVER: JsonObject = {
    "host": "smtp.example.com",
    "port": 587,
    "username": "ada",
    "password": "hunter2",
}


@pytest.mark.parametrize("sender", [{}, SENDER])
def test_shared_email_provider_has_no_server(sender: JsonObject) -> None:
    provider = decode(AuthEmailProvider, {"type": "shared", **sender})
    assert provider.type is AuthEmailProviderType.SHARED
    assert (provider.host, provider.port, provider.username, provider.password) == (None,) * 4
    assert provider.sender_email == sender.get("sender_email")


def test_standard_email_provider_has_a_server() -> None:
    provider = decode(AuthEmailProvider, {"type": "standard", **SERVER, **SENDER})
    assert (provider.host, provider.port) == ("smtp.example.com", 587)
    assert provider.password
    assert provider.password.reveal() == "hunter2"


def test_new_type_of_email_provider_does_not_hide_the_other_settings() -> None:
    content = {"email_provider": {"type": "cloud"}, "allow_localhost": True}
    plugins = decode(AuthPlugins, content)
    assert plugins.email_provider
    assert plugins.email_provider.type == "cloud"
    assert plugins.allow_localhost is True


def test_new_event_of_a_webhook_is_kept_as_its_name() -> None:
    content = {"enabled": True, "enabled_events": ["user.created", "user.deleted"]}
    webhook = decode(AuthWebhook, content)
    assert webhook.enabled_events == [AuthWebhookEvent.USER_CREATED, "user.deleted"]
