"""Requests as bytes: most of them valid except in one place, so that they reach the handlers."""

import gzip
import json
import zlib
from collections.abc import Mapping, Sequence
from string import Formatter
from typing import TypeVar
from urllib.parse import quote, quote_from_bytes

from msgspec import Struct, UnsetType

from neonctl_local.api.description.published import Endpoint, Schema, description
from neonctl_local.server.routes import LOCAL_ROUTES, ROUTES
from tools.fuzz.draw import MOMENTS, ODD, Draw

T = TypeVar("T")


class World(Struct):
    """The names that requests can use: ids of existing objects, and API keys."""

    host: str
    keys: Sequence[str]
    ids: Mapping[str, Sequence[str]]


METHODS = (b"GET", b"POST", b"PATCH", b"PUT", b"DELETE")
ODD_METHODS = (
    *(b"HEAD", b"OPTIONS", b"TRACE", b"CONNECT", b"PRI", b"get", b"", b"G\xffT", b"M-SEARCH"),
    b"A" * 9000,
)
VERSIONS = (
    *(b" HTTP/1.0", b" HTTP/2.0", b" HTTP/0.9", b"", b" http/1.1", b" HTTP/1.1 ", b" HTTP/1.10"),
    *(b" HTTPS/1.1", b" HTTP/1", b" HTTP/9.9", b" HTTP/1.1\r", b" HTTP/-1.1"),
)
ODD_IDS = (
    *("", ".", "..", "%", "%2", "%zz", "%00", "%0A", "%2F", "%2e%2e", "%ff%fe", "%ED%A0%80", "*"),
    *("a" * 61, "a" * 5000, "%61" * 100, "\u00e4", "a b", "a;b", "a?b", "a#b", "'", '"', "0", "-1"),
    *("9" * 20, "1e5", "null", "neon_api_key_0123456789abcdef", "%6Eeon_api_key_%30", "A-B-1"),
)
BASES = ("", "/", "/api", "/api/v1", "/api/v2/", "//api/v2", "/API/V2", "/api/v2/.", "/%61pi/v2")
ODD_HEADERS = (
    *(b"Content-Length: 5", b"Content-Length: -5", b"Content-Length: 0x5", b"Content-Length:"),
    *(b"Content-Length: 99999999999999999999", b"Content-Length: 1048577", b"Content-Length: 1"),
    *(b"Transfer-Encoding: chunked", b"Transfer-Encoding: gzip", b"Transfer-Encoding: , chunked"),
    *(b"Transfer-Encoding : chunked", b"Transfer-Encoding:\x0bchunked", b"TE: trailers"),
    *(b"Content-Encoding: br", b"Content-Encoding: zstd", b"Content-Encoding: gzip, gzip"),
    *(b"Content-Encoding: \xff", b"Content-Encoding: identity", b"Content-Encoding:"),
    *(b"Expect: 100-continue", b"Expect: \xff", b"Expect: 200-ok", b"Upgrade: websocket"),
    *(b"Connection: close", b"Connection: upgrade", b"Connection: keep-alive", b"Connection: \xff"),
    *(
        b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AA",
        b"Upgrade: tcp",
    ),
    *(b"Sec-WebSocket-Key1: a", b"Host: evil.example", b"Host:", b"Host: [::1", b"Host: \xff"),
    *(
        b"Origin: null",
        b"Origin: http://evil.example",
        b"Origin: \xff",
        b"Origin: http://[",
        b"Origin:",
    ),
    *(
        b"Authorization: Bearer",
        b"Authorization: Basic Og==",
        b"Authorization: \xff\xfe",
        b"Cookie: a",
    ),
    *(b"X-Request-ID: \xff", b"X-Request-ID: mine", b"X-Request-ID: a b", b"X-Request-ID: %00"),
    *(b"Content-Type: text/plain", b"Content-Type: application/json; charset=utf-16"),
    *(b"Content-Type: application/json;", b"Content-Type: \xff/\xff", b"Content-Type: multipart/a"),
    *(
        b'Content-Type: application/json; a="',
        b"Content-Type: /",
        b"Content-Type:",
        b"Range: bytes=0-",
    ),
    *(b"If-None-Match: *", b"If-Modified-Since: x", b"Accept: text/html", b"Accept-Encoding: gzip"),
    *(
        b"X: a\r\n b",
        b"X",
        b": x",
        b"X: \x00",
        b"X:\ty",
        b"\xff: a",
        b"X: " + b"a" * 9000,
        b"X y: a",
    ),
    *(b"X: 1\r\n" * 200 + b"X: 2", b"\r", b"X: a\nY: b", b"X: a\rY: b", b"Forwarded: for=\xff"),
)
ODD_BODIES = (
    *(b"", b"{", b"\xff\xfe", b"\xef\xbb\xbf{}", b'{"project":{}}\x00', b"{}{}", b"\x1f\x8b\x08"),
    *("{}".encode("utf-16"), b" " * 70_000, b"[" * 5000, b'{"a":' * 3000, b'"' + b"x" * 70_000),
    *(b'{"project":{"name":"\\ud800"}}', b'{"project":{"name":"\xed\xa0\x80"}}', b"NaN"),
    b"x" * (1 << 20),
)

_ODD_VALUES: Sequence[object] = (
    *(None, True, -1, 2**70, 1.5, 1e308, "", "\0", "a\nb", "x" * 3000, [0], {"a": 0}),
)


def a_request(draw: Draw, world: World) -> bytes:
    """Return one request, as bytes."""
    name, endpoint = draw.pick(_ENDPOINTS)
    method, _, path = name.partition(" ")
    sent_method = _mostly(draw, method.encode(), (*METHODS, *ODD_METHODS, _some_bytes(draw)))
    target = _target(draw, world, path, endpoint)
    version = _mostly(draw, b" HTTP/1.1", VERSIONS)
    body = _body(draw, world, endpoint)
    headers, body = _framed(draw, _headers(draw, world), body)
    end = _mostly(draw, b"\r\n\r\n", (b"\n\n", b"\r\n", b"\r\n\r\n\r\n", b""))
    return b"\r\n".join((sent_method + b" " + target + version, *headers)) + end + body


def _endpoints() -> list[tuple[str, Endpoint]]:
    published = description().endpoints
    served = {str(route): published.get(str(route), Endpoint()) for route in ROUTES}
    local = {f"{route.method} \0{route.path}": Endpoint() for route in LOCAL_ROUTES}
    # The endpoints that are served are twice in the list.
    return [*published.items(), *served.items(), *served.items(), *local.items()]


_ENDPOINTS = _endpoints()


def _mostly(draw: Draw, usual: T, odd: Sequence[T]) -> T:
    return usual if draw.byte() < 240 else draw.pick(odd)


def _some_bytes(draw: Draw) -> bytes:
    return bytes(draw.byte() for _ in range(draw.byte() % 16))


def _target(draw: Draw, world: World, path: str, endpoint: Endpoint) -> bytes:
    base = "" if path.startswith("\0") else "/api/v2"
    base = _mostly(draw, base, (*BASES, f"http://{world.host}/api/v2", "http://evil", "*", "x"))
    ids = {
        name: _id(draw, world, name)
        for _, name, _, _ in Formatter().parse(path)
        if name is not None
    }
    filled = path.removeprefix("\0").format(**ids)
    query = "&".join(
        f"{quote(name)}={_query_value(draw, world, name, parameter.schema)}"
        for name, parameter in endpoint.query.items()
        if parameter.required or draw.byte() % 4 == 0
    )
    query = _mostly(
        draw, query, (f"{query}&{query}", "?", "&=&", "a=%", "cursor=x", "limit=0", "%ff=%ff")
    )
    target = f"{base}{filled}?{query}" if query else f"{base}{filled}"
    return _mostly(
        draw, target.encode(), (_some_bytes(draw), target.encode() + b"\xff", b"/" * 9000)
    )


def _id(draw: Draw, world: World, name: str) -> str:
    known = world.ids.get(name, ("7",))
    if draw.byte() < 232:
        return quote(draw.pick(known), safe="")
    return draw.pick((*ODD_IDS, draw.pick(world.keys), quote_from_bytes(_some_bytes(draw))))


def _query_value(draw: Draw, world: World, name: str, schema: Schema) -> str:
    if draw.byte() >= 224:
        return draw.pick(
            (*ODD_IDS, quote(draw.pick(world.keys)), quote_from_bytes(_some_bytes(draw)))
        )
    value = _value(draw, world, name, schema)
    text = value if isinstance(value, str) else json.dumps(value)
    return quote(text, errors="replace")


def _headers(draw: Draw, world: World) -> list[bytes]:
    key = draw.pick(world.keys) if draw.byte() >= 224 else world.keys[0]
    headers = [
        b"Host: " + world.host.encode(),
        b"Authorization: Bearer " + key.encode(),
        b"Content-Type: application/json",
        b"Accept: application/json",
    ]
    if draw.byte() >= 160:
        at = draw.byte() % (len(headers) + 1)
        odd = draw.pick((*ODD_HEADERS, _some_bytes(draw), b"X-Request-ID: " + key.upper().encode()))
        headers[at : at + draw.byte() % 2] = [odd]
    return headers


def _body(draw: Draw, world: World, endpoint: Endpoint) -> bytes:
    if draw.byte() >= 240:
        return draw.pick((*ODD, *ODD_BODIES, _some_bytes(draw)))
    if isinstance(endpoint.body, UnsetType):
        return b""
    return json.dumps(_value(draw, world, "", endpoint.body)).encode()


def _framed(draw: Draw, headers: list[bytes], body: bytes) -> tuple[list[bytes], bytes]:
    choice = draw.byte()
    if choice >= 192:
        coding = draw.pick((b"gzip", b"deflate"))
        headers = [*headers, b"Content-Encoding: " + coding]
        body = gzip.compress(body, mtime=0) if coding == b"gzip" else zlib.compress(body)
        if choice >= 240:
            body = body[: draw.byte()]
    match draw.byte():
        case kind if kind < 160:
            return ([*headers, b"Content-Length: %d" % len(body)] if body else headers), body
        case kind if kind < 224:
            size = draw.byte() + 1
            chunks = [body[at : at + size] for at in range(0, min(len(body), size * 20), size)]
            ends = (b"0\r\n\r\n", b"0\r\nX: y\r\n\r\n", b"", b"-1\r\n\r\n", b"zz\r\n", b"f" * 40)
            coded = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
            return [*headers, b"Transfer-Encoding: chunked"], coded + _mostly(draw, ends[0], ends)
        case kind if kind < 240:
            wrong = len(body) + draw.byte() - 128
            return [*headers, b"Content-Length: %d" % wrong], body
        case _:
            return headers, body


def _value(draw: Draw, world: World, name: str, schema: Schema, depth: int = 0) -> object:
    """Return a value for a schema. Most values are valid."""
    while schema.ref:
        schema = description().schemas[schema.ref.rpartition("/")[2]]
    if depth > 8 or draw.byte() >= 252:
        return draw.pick(_ODD_VALUES)
    if schema.enum:
        return draw.pick(schema.enum)
    if schema.properties or schema.type == "object":
        return {
            key: _value(draw, world, key, part, depth + 1)
            for key, part in schema.properties.items()
            if key in schema.required or draw.byte() % 3 == 0
        }
    return _scalar(draw, world, name, schema, depth)


def _scalar(draw: Draw, world: World, name: str, schema: Schema, depth: int) -> object:
    match schema.type:
        case "array" if isinstance(schema.items, Schema):
            items = schema.items
            return [_value(draw, world, name, items, depth + 1) for _ in range(draw.byte() % 3)]
        case "boolean":
            return draw.pick((True, False))
        case "integer" | "number":
            return draw.pick((0, 1, 7, schema.minimum or 0, schema.maximum or 300, draw.number()))
        case _:
            known = world.ids.get(name) or world.ids.get(f"{name}_id") or ("main",)
            texts = (draw.pick(known), "a", f"name-{draw.byte()}", "10.0.0.0/8", *MOMENTS, "17")
            return draw.pick(texts)
