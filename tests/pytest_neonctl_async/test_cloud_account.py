"""The addresses of servers show no secret, and an incomplete account is refused."""

import pytest

from pytest_neonctl_async.cloud import CloudAccount
from pytest_neonctl_async.server_process import ServerURLs

ENVIRONMENT = {"NEON_API_KEY": "sesame", "NEON_PROJECT_ID": "late-frost-12345678"}


@pytest.mark.parametrize(
    ("environment", "missing"),
    [
        ({}, "NEON_API_KEY and NEON_PROJECT_ID"),
        ({"NEON_API_KEY": "sesame", "NEON_PROJECT_ID": ""}, "NEON_PROJECT_ID"),
    ],
)
def test_missing_variables_of_an_account_are_named(
    environment: dict[str, str], missing: str
) -> None:
    with pytest.raises(ValueError, match=f"^--neon-cloud needs {missing} to be set$"):
        CloudAccount(environment)


def test_base_url_of_an_account_is_optional() -> None:
    assert CloudAccount(ENVIRONMENT).base_url is None
    url = "http://127.0.0.1:1/api/v2"
    assert CloudAccount({**ENVIRONMENT, "NEON_API_HOST": url}).base_url == url


def test_repr_shows_no_key_and_no_token() -> None:
    assert "sesame" not in repr(CloudAccount(ENVIRONMENT))
    urls = ServerURLs("http://127.0.0.1:1", "http://127.0.0.1:2", "sesame")
    assert repr(urls) == "<ServerURLs http://127.0.0.1:1>"
