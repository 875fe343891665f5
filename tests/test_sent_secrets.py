"""Secrets in the bodies of requests are hidden in errors, their frames and pickles, and in logs."""

from collections.abc import Awaitable, Callable

import pytest

from neonctl_async import NeonClient, Secret
from tests.support.records import PROJECT
from tests.support.server import in_sequence
from tests.test_secrets import PASSWORD, RESPONSES, assert_hidden, failure_of, log_everything

__all__ = ["log_everything"]

CALLS: list[Callable[[NeonClient, str | Secret], Awaitable[object]]] = [
    lambda neon, secret: neon.auth.update_email_provider(
        PROJECT, "br-1", type="standard", password=secret
    ),
    lambda neon, secret: neon.auth.add_oauth_provider(
        PROJECT, "br-1", id="google", client_secret=secret
    ),
    lambda neon, secret: neon.auth.update_oauth_provider(
        PROJECT, "br-1", "google", client_secret=secret
    ),
    lambda neon, secret: neon.auth.update_oauth_provider(
        "not/an/id", "br-1", "google", client_secret=secret
    ),
]


@pytest.mark.parametrize("secret", [PASSWORD, Secret(PASSWORD)])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("name", ["400 of JSON", "200 of another shape", "reset", "hang"])
def test_failed_request_shows_no_secret_of_its_body(
    name: str,
    call: Callable[[NeonClient, str | Secret], Awaitable[object]],
    secret: str | Secret,
    caplog: pytest.LogCaptureFixture,
) -> None:
    failure = failure_of(lambda neon: call(neon, secret), in_sequence(RESPONSES[name]))
    assert_hidden(failure, caplog)
