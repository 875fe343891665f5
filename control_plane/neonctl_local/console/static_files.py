"""The style sheet, the scripts and the icon. They are read once and kept in memory."""

import hashlib
from importlib import resources
from typing import Final

from aiohttp import web

from neonctl_local.errors import ApiError

_TYPES: Final = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}


class StaticFiles:
    """All static files. Creating an instance reads them."""

    def __init__(self) -> None:
        directory = resources.files("neonctl_local.console") / "static"
        self._files = {
            file.name: file.read_bytes()
            for file in directory.iterdir()
            if f".{file.name.rpartition('.')[2]}" in _TYPES
        }
        self._tags = {
            name: hashlib.sha256(content).hexdigest()[:16] for name, content in self._files.items()
        }

    def respond(self, request: web.Request, name: str) -> web.Response:
        """Return a file, or 304 if the browser has its current version."""
        if name not in self._files:
            raise ApiError(404, "there is no such file")
        response = web.Response(
            body=self._files[name],
            content_type=_TYPES[f".{name.rpartition('.')[2]}"],
            charset="utf-8",
            headers={"Cache-Control": "no-cache"},
        )
        response.etag = self._tags[name]
        sent = request.if_none_match or ()
        if any(tag.value == self._tags[name] for tag in sent):
            return web.Response(status=304, headers=response.headers)
        return response
