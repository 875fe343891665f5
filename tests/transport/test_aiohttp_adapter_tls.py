"""Certificates: the client trusts only the system's authorities, or those of ca_file."""

import ssl
from pathlib import Path

import pytest

from neonctl_async import ConfigurationError, ConnectionFailedError, NeonClient, RetryPolicy
from tests.support.records import API_KEY, client_of
from tests.transport.tls import server_with


async def test_certificate_of_a_trusted_authority_is_accepted(
    certificates: dict[str, ssl.SSLContext], ca_file: Path
) -> None:
    async with (
        server_with(certificates["good"]) as server,
        client_of(server, ca_file=ca_file) as neon,
    ):
        assert await neon.request("GET", "/projects") == {"ok": True}


@pytest.mark.parametrize(
    ("certificate", "is_trusted", "reason"),
    [
        ("good", False, "unable to get local issuer certificate.*ca_file"),
        ("other host", True, "not valid for 'localhost'"),
        ("expired", True, "expired"),
    ],
)
async def test_other_certificates_are_refused_before_a_request_is_sent(
    certificates: dict[str, ssl.SSLContext],
    ca_file: Path,
    certificate: str,
    is_trusted: bool,
    reason: str,
) -> None:
    ca = ca_file if is_trusted else None
    async with (
        server_with(certificates[certificate]) as server,
        client_of(server, ca_file=ca, retry=RetryPolicy.never()) as neon,
    ):
        with pytest.raises(ConnectionFailedError, match=reason) as caught:
            await neon.api_keys.create(key_name="ci")
    assert not caught.value.maybe_delivered
    assert server.received == []


def test_missing_ca_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"ca_file is .*none\.pem"):
        NeonClient(API_KEY, ca_file=tmp_path / "none.pem")


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_invalid_name_of_a_ca_file_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="ca_file is"):
        NeonClient(API_KEY, ca_file=name)


def test_ca_file_without_certificates_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.pem"
    path.write_text("not a certificate")
    with pytest.raises(ConfigurationError, match="PEM"):
        NeonClient(API_KEY, ca_file=path)
