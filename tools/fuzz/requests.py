"""Requests with any ids, queries, paths and methods: a URL below the base URL, or an error."""

from datetime import UTC, datetime, timedelta, timezone
from string import Formatter
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

from msgspec import UNSET, UnsetType
from yarl import URL

from neonctl_async import OperationStatus
from neonctl_async._internal import shorten
from neonctl_async.transport.encoding import MAX_ID_CHARACTERS
from neonctl_async.transport.protocol import Request, raw_request, request
from tests.transport.wire import BASE_URL, WIRE
from tools.fuzz.draw import Draw

Value: TypeAlias = str | int | float | datetime | list[str] | UnsetType | bytes | None

TEMPLATES = (
    "/projects",
    "/projects/{project_id}",
    "/projects/{project_id}/branches/{branch_id}",
    "/projects/{project_id}/operations",
    "/organizations/{org_id}/api_keys/{key_id}",
)
DAYS = (
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(2026, 6, 15, 12, tzinfo=UTC),
    datetime(9999, 12, 31, 23, tzinfo=UTC),
)
NOT_A_PROJECT = "auth"
"""The segment after ``/projects`` in paths without a project, such as ``/projects/auth/keys``."""
ZONES = (UTC, None, timezone(timedelta(hours=14)), timezone(-timedelta(hours=12)))


def a_request(draw: Draw) -> None:
    """Check a request: it is rejected, or its URL contains exactly the given ids and query."""
    template = draw.pick(TEMPLATES)
    ids: dict[str, Any] = {name: _id(draw) for _, name, _, _ in Formatter().parse(template) if name}
    query: Any = {draw.text(): _query_value(draw) for _ in range(draw.byte() % 4)}
    rejected = [name for name, value in ids.items() if not _is_id(value)]
    rejected += [name for name, value in query.items() if not _is_query(name, value)]
    try:
        call: Request[object] = request("GET", template, object, *ids.values(), query=query)
    except (TypeError, ValueError) as error:
        _check_rejection(str(error), rejected)
        return
    assert not rejected
    segments = [unquote(segment) for segment in _segments(call)]
    assert segments == [part.format(**ids) for part in template.split("/")[1:]]
    project_id = str(ids.get("project_id", NOT_A_PROJECT))
    assert call.project_id == (None if project_id == NOT_A_PROJECT else project_id)
    _check_query(call, query)


def a_raw_request(draw: Draw) -> None:
    """Check that a caller's path is sent unchanged, or rejected."""
    method, path = draw.text(), draw.text()
    try:
        call: Request[object] = raw_request(method, path, object, query={"cursor": "a"})
    except ValueError:
        return
    assert call.method.isalpha()
    assert call.method.isascii()
    segments = _segments(call)
    assert "/".join(["", *segments]) == path
    assert not any(character in unquote(segment) for segment in segments for character in "/\\")
    assert call.route.count("/") == len(segments)


def _check_rejection(reason: str, rejected: list[str]) -> None:
    assert any(name in reason or shorten(name) in reason for name in rejected)


def _id(draw: Draw) -> object:
    return draw.pick((draw.text(), draw.number(), OperationStatus.FAILED, True, None))


def _query_value(draw: Draw) -> Value:
    match draw.byte() % 8:
        case 0:
            return draw.text()
        case 1:
            return draw.number()
        case 2:
            return draw.number() / 4
        case 3:
            return draw.some(draw.text)
        case 4:
            return draw.pick(DAYS).replace(tzinfo=draw.pick(ZONES))
        case _:
            return draw.pick((True, False, UNSET, OperationStatus.FAILED, None, b"a"))


def _is_id(value: object) -> bool:
    if value is True or value is None:
        return False
    text = str(value)
    changes_path = text in {"", ".", ".."} or "/" in text
    return not changes_path and len(text) <= MAX_ID_CHARACTERS and _is_unicode(text)


def _is_query(name: str, value: Value) -> bool:
    match value:
        case str():
            valid = _is_unicode(value)
        case list():
            valid = all(map(_is_unicode, value))
        case datetime():
            valid = _is_moment(value)
        case _:
            valid = value is not None and not isinstance(value, bytes)
    return valid and _is_unicode(name)


def _is_moment(value: datetime) -> bool:
    try:
        return value.tzinfo is not None and bool(value.astimezone(UTC))
    except OverflowError:
        return False


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _segments(call: Request[object]) -> list[str]:
    """Return the segments below the base URL; check that all parsers agree on the URL."""
    url = WIRE.url(call)
    base, parts, parsed = urlsplit(BASE_URL), urlsplit(url), URL(url, encoded=True)
    assert url.isascii()
    assert url.isprintable()
    assert " " not in url
    assert (parts.scheme, parts.netloc) == (base.scheme, base.netloc)
    assert (parsed.scheme, parsed.raw_authority) == (base.scheme, base.netloc)
    assert parsed.raw_path == parts.path
    assert parsed.raw_fragment == parts.fragment == ""
    assert parts.path.startswith(f"{base.path}/")
    segments = parts.path.removeprefix(f"{base.path}/").split("/")
    assert not {"", ".", ".."} & {unquote(segment) for segment in segments}
    return segments


def _check_query(call: Request[object], query: dict[str, Value]) -> None:
    url = WIRE.url(call)
    sent = parse_qsl(urlsplit(url).query, keep_blank_values=True)
    assert sent == list(URL(url, encoded=True).query.items())
    given = [
        (name, one)
        for name, value in query.items()
        if value is not UNSET
        for one in (value if isinstance(value, list) else [value])
    ]
    for (name, text), (expected, value) in zip(sent, given, strict=True):
        assert name == expected
        match value:
            case bool():
                assert text == str(value).lower()
            case datetime():
                assert datetime.fromisoformat(text) == value
            case _:
                assert text == str(value)
