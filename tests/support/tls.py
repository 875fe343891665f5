"""TLS certificates of servers."""

import ssl
from datetime import datetime

import trustme


def certified(
    authority: trustme.CA, host: str, not_after: datetime | None = None
) -> ssl.SSLContext:
    """Return a TLS context for a server, with a certificate for ``host``."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issued = authority.issue_cert(host, not_after=not_after)
    issued.configure_cert(context)  # pyright: ignore[reportUnknownMemberType] - also accepts contexts of pyOpenSSL, which is untyped
    return context
