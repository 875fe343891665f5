"""A server with TLS."""

import ssl

from tests.support.server import MisbehavingServer, http_response, in_sequence


def server_with(context: ssl.SSLContext) -> MisbehavingServer:
    """Return a server that uses ``context`` and always returns ``{"ok": true}``."""
    return MisbehavingServer(in_sequence(http_response(content={"ok": True})), context)
