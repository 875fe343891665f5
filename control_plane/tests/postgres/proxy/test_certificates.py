"""The private certificate authority and the certificate of the proxy."""

import os
import ssl
from contextlib import suppress
from pathlib import Path

import pytest

from neonctl_local.postgres.proxy.certificates import Certificates, private_certificates


def handshake(server: ssl.SSLContext, ca_file: Path, host: str) -> None:
    """Connect a client that verifies the certificate of ``server`` for ``host``."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context(cafile=ca_file)
    ours = client.wrap_bio(to_client, to_server, server_hostname=host)
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    for end in (ours, theirs, ours, theirs):
        with suppress(ssl.SSLWantReadError):
            end.do_handshake()


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return private_certificates(tmp_path / "certificates", ["*.neon.invalid"])


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "::1", "localhost", "ep-late-frost-12345678.neon.invalid"]
)
def test_certificate_is_valid_for_the_host(certificates: Certificates, host: str) -> None:
    handshake(certificates.context, certificates.ca_file, host)


def test_certificate_is_invalid_for_other_hosts(certificates: Certificates) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        handshake(certificates.context, certificates.ca_file, "example.com")


def test_later_certificates_have_the_same_authority(
    certificates: Certificates, tmp_path: Path
) -> None:
    before = certificates.ca_file.read_bytes()
    later = private_certificates(tmp_path / "certificates")
    assert later.ca_file.read_bytes() == before
    handshake(later.context, certificates.ca_file, "localhost")


def test_only_the_owner_can_read_the_key(certificates: Certificates) -> None:
    modes = {
        path.name: path.stat().st_mode & 0o777 for path in certificates.ca_file.parent.iterdir()
    }
    os.umask(umask := os.umask(0))
    assert modes == {"ca.pem": 0o644 & ~umask, "ca-key.pem": 0o600}


def test_certificate_without_its_key_is_replaced(certificates: Certificates) -> None:
    directory = certificates.ca_file.parent
    before = certificates.ca_file.read_bytes()
    (directory / "ca-key.pem").unlink()
    (directory / "ca-key.pem.partial").write_bytes(b"an earlier write was interrupted")
    later = private_certificates(directory)
    assert later.ca_file.read_bytes() != before
    handshake(later.context, later.ca_file, "localhost")
