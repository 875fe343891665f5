"""A private certificate authority, and the proxy's certificate."""

import hashlib
import os
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

import trustme

from neonctl_local.postgres.proxy.handshake import TLSContext

LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


class Certificates(NamedTuple):
    """The TLS settings of the proxy and its clients."""

    context: ssl.SSLContext
    """The proxy's TLS context."""
    ca_file: Path
    """The certificate that clients trust: ``sslrootcert`` of libpq."""


def private_certificates(directory: Path, hosts: Iterable[str] = ()) -> Certificates:
    """Issue a certificate for the loopback addresses and ``hosts``, which may contain wildcards.

    The authority is stored in ``directory``, so clients that trust it trust later certificates too.
    """
    authority = _load_authority(directory)
    issued = authority.issue_cert(*LOOPBACK, *hosts)
    context = TLSContext(ssl.PROTOCOL_TLS_SERVER)
    certificate = ssl.PEM_cert_to_DER_cert(issued.cert_chain_pems[0].bytes().decode())
    context.binding = hashlib.sha256(certificate).digest()  # its signature uses this hash, too
    issued.configure_cert(context)  # pyright: ignore[reportUnknownMemberType] - also accepts contexts of pyOpenSSL, which is untyped
    return Certificates(context, directory / "ca.pem")


def _load_authority(directory: Path) -> trustme.CA:
    """Return the authority in ``directory``. Create one if there is none."""
    certificate, key = directory / "ca.pem", directory / "ca-key.pem"
    if certificate.exists() and key.exists():
        return trustme.CA.from_pem(certificate.read_bytes(), key.read_bytes())
    authority = trustme.CA(organization_name="neonctl-async")
    directory.mkdir(parents=True, exist_ok=True)
    _write(key, authority.private_key_pem.bytes(), mode=0o600)
    _write(certificate, authority.cert_pem.bytes(), mode=0o644)
    return authority


def _write(path: Path, data: bytes, *, mode: int) -> None:
    """Replace a file. Its content is never visible with wider permissions."""
    partial = path.with_name(f"{path.name}.partial")
    partial.unlink(missing_ok=True)
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    partial.replace(path)
