"""Checks of a request before its API key is checked: host names, web pages, and framing.

A web page in a browser can send requests to loopback addresses. A page that controls the DNS of its
own name can even read the responses (DNS rebinding). Both are visible in the headers of a request:
the ``Host`` header contains the name in the URL, and the ``Origin`` header the address of the page.
"""

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from aiohttp import HttpVersion10, HttpVersion11, web

from neonctl_local.errors import ApiError, forbidden, invalid
from neonctl_local.server.names import ServerNames, parse_authority

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_READS: Final = frozenset({"GET", "HEAD"})


def check_admission(request: web.Request, names: ServerNames, origins: frozenset[str]) -> None:
    """Raise ApiError for a request that is malformed or not meant for this server.

    Web pages of ``origins`` may send requests that change data.
    """
    if request.version not in {HttpVersion10, HttpVersion11}:
        raise invalid("the HTTP version is not 1.0 or 1.1")
    if not request.raw_path.isascii():  # the Python parser of aiohttp accepts other bytes
        raise invalid("the path or the query has a byte that is not ASCII: percent-encode it")
    hosts = request.headers.getall("Host", ())
    _check_host(request, hosts, names)
    if request.method not in _READS:
        _check_origin(
            [one for one in request.headers.getall("Origin", ()) if one not in origins], hosts
        )
    _check_transfer_encoding(request)


def _check_host(request: web.Request, hosts: Sequence[str], names: ServerNames) -> None:
    if len(hosts) > 1:
        raise invalid(f"the request has {len(hosts)} Host headers: send one")
    if not hosts and request.version == HttpVersion11:
        raise invalid("the Host header is missing: HTTP/1.1 requires it")
    target = request.raw_path
    if request.method == "CONNECT":
        raise invalid("the method is CONNECT: this server is not a proxy")
    if not target.startswith(("/", "*")):
        hosts = [*hosts, urlsplit(target).netloc]  # the absolute form, as proxies receive it
    for host in hosts:
        authority = parse_authority(host)
        if authority is None:
            raise invalid(f"the host {host[:100]!r} is malformed: expected one such as {names}")
        if not names.include(authority):
            raise ApiError(
                421,
                f"{host!r} is not a name of this server: expected {names}. To allow it, start the "
                f"server with --allow-host {host} or allowed_hosts=[{host!r}]",
            )


def _check_origin(origins: Sequence[str], hosts: Sequence[str]) -> None:
    for origin in origins:
        if len(hosts) != 1 or not _is_same_origin(origin, hosts[0]):
            raise forbidden(
                f"a web page of {origin[:100]!r} sent the request: only pages of this server may "
                "send requests that change data. Send it from a program, without Origin, or let a "
                "page send SQL with --allow-origin or allowed_origins="
            )


def _is_same_origin(origin: str, host: str) -> bool:
    scheme, separator, authority = origin.partition("://")
    port = _DEFAULT_PORTS.get(scheme.lower())
    page, server = parse_authority(authority), parse_authority(host)
    if not separator or port is None or page is None or server is None:
        return False
    return (page[0], page[1] or port) == (server[0], server[1] or port)


def _check_transfer_encoding(request: web.Request) -> None:
    codings = request.headers.getall("Transfer-Encoding", ())
    if not codings:
        return
    # A proxy in front may assume another length of the body: request smuggling.
    if request.version == HttpVersion10:
        raise invalid("HTTP/1.0 has no Transfer-Encoding: send HTTP/1.1")
    if [coding.strip().lower() for coding in codings] != ["chunked"]:
        raise invalid("the Transfer-Encoding is not 'chunked': no other is supported")
    if "Content-Length" in request.headers:
        raise invalid("the request has a Transfer-Encoding and a Content-Length: send one of them")
