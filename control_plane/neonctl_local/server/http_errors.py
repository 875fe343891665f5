"""Error responses in the API's format, even for requests that no route handles."""

import logging
import re
from http import HTTPStatus
from typing import Final

from aiohttp import web
from aiohttp.http_exceptions import InvalidURLError, LineTooLong, TransferEncodingError

from neonctl_local import ids
from neonctl_local.api.request.calls import error_body
from neonctl_local.errors import ApiError, invalid

_RECEIVED: Final = re.compile(r"""\n\n|:? b?(?!'[A-Z][A-Za-z-]+')['"]""")
"""Matches the end of the reason in an error message of aiohttp's parser.

Received bytes follow the reason. The reason itself can contain a header name in quotes.
"""
_KINDS: Final[dict[type[BaseException], str]] = {
    LineTooLong: "the request line or a header is longer than 8190 bytes",
    InvalidURLError: "the path is not valid: percent-encode it",
    TransferEncodingError: "a chunk of the body is malformed",
}
_PROTOCOLS: Final = {
    "PRI/Upgrade": "the server supports HTTP/1.1, and not HTTP/2",
    "HTTP/2": "the server supports HTTP/1.1, and not HTTP/2",
    "HTTPS": "the server does not support TLS: use http:// instead of https://",
}


class MaskTokens(logging.Filter):
    """Masks tokens in the server's log, and drops tracebacks, which can quote received bytes."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Mask tokens in the record, and replace its traceback with the text of the error."""
        reason = f": {record.exc_info[1]}" if record.exc_info else ""
        record.msg, record.args = ids.mask(f"{record.getMessage()}{reason}"), ()
        record.exc_info = record.exc_text = None
        return True


server_logger: Final = logging.getLogger(f"{__name__}.server")
server_logger.addFilter(MaskTokens())


class BareResponse(web.Response):
    """A response without the ``Server`` header, for requests that reach no route.

    The application removes the header from all other responses.
    """

    async def _prepare_headers(self) -> None:
        await super()._prepare_headers()
        self.headers.pop("Server", None)


def error_response(
    error: ApiError, request_id: str, kind: type[web.Response] = web.Response
) -> web.Response:
    """Return the response for an error. Tokens in its message are masked."""
    masked = ApiError(error.status, ids.mask(error.message), code=error.code)
    response = kind(
        status=error.status, body=error_body(masked, request_id), content_type="application/json"
    )
    response.headers.update(error.headers)
    if error.headers.get("Connection") == "close":
        response.force_close()
    return response


def request_timeout(part: str, seconds: float) -> ApiError:
    """Return the 408 error for a part of a request that did not arrive in time."""
    message = f"the {part} of the request did not arrive within {seconds:g} seconds"
    return ApiError(408, message, headers={"Connection": "close"})


def raw_response(error: ApiError, request_id: str, date: str) -> bytes:
    """Return an error response as bytes, for a connection without a complete request."""
    body = error_body(error, request_id)
    lines = (
        f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}",
        "Content-Type: application/json",
        f"x-neon-ret-request-id: {request_id}",
        f"Date: {date}",
        f"Content-Length: {len(body)}",
        "Connection: close",
        "",
        "",
    )
    return "\r\n".join(lines).encode() + body


def outside_error(status: int, cause: BaseException | None, message: str | None) -> ApiError:
    """Return the error for a request that did not reach the application."""
    if status == 400:
        return parser_error(cause, message)
    return ApiError(status, "internal server error")


def parser_error(error: BaseException | None, message: str | None) -> ApiError:
    """Return the 400 error for a request that is not valid HTTP. Received bytes are not quoted."""
    for kind, explanation in _KINDS.items():
        if isinstance(error, kind):
            return invalid(f"invalid HTTP: {explanation}")
    # The parser appends or quotes the received line, which can contain a key.
    reason = " ".join(_RECEIVED.split(message or "", 1)[0].split()).strip(" :.")
    for protocol, explanation in _PROTOCOLS.items():
        if protocol in reason:
            return invalid(f"invalid HTTP: {explanation}")
    return invalid(f"invalid HTTP: {ids.mask(reason)[:100] or 'the request cannot be parsed'}")
