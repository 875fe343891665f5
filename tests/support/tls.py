"""What a server shows of itself."""

import ssl
from datetime import datetime

import trustme


def certified(
    authority: trustme.CA, host: str, not_after: datetime | None = None
) -> ssl.SSLContext:
    """A server's context, certified for ``host``."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issued = authority.issue_cert(host, not_after=not_after)
    issued.configure_cert(context)  # pyright: ignore[reportUnknownMemberType] - also takes what pyOpenSSL has
    return context
