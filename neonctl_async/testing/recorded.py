"""Recorded responses, for tests without a server. Needs ``neonctl-async[testing]``.

::

    with RecordedResponses() as responses:
        responses.add("POST", "/projects/p-1/branches", Path("create-branch.json"), status=201)
        responses.operation("p-1", "op-1", "running", "finished")
        async with NeonClient("any-key") as neon:
            await neon.branches.create("p-1", wait=True)
"""

import inspect
import os
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any, ClassVar, Self, TypeAlias
from urllib.parse import parse_qs, unquote, urlsplit

try:
    from aioresponses import CallbackResult, aioresponses
except ImportError as _missing:
    raise ImportError(
        "recorded responses need aioresponses: pip install 'neonctl-async[testing]'"
    ) from _missing
import msgspec
from aiohttp import ClientResponse, Payload
from yarl import URL

from neonctl_async.config import BASE_URL_VARIABLE, DEFAULT_BASE_URL
from neonctl_async.models.secret import Secret
from neonctl_async.transport.encoding import JSON, Json

Content: TypeAlias = (
    Path | bytes | str | msgspec.Struct | Mapping[str, object] | Sequence[object] | None
)
"""A body: the file that holds it, its bytes or text, or an object to encode as JSON.

``None`` is an empty body.
"""

METHODS = ("GET", "POST", "PATCH", "PUT", "DELETE")


class UnrecordedRequestError(AssertionError):
    """A request has no recorded response. The client raises this at once, without a retry."""


class RecordedRequest(msgspec.Struct, frozen=True):
    """A request: ``path`` is relative to the base URL, and ``body`` is decoded from JSON.

    The body of a form, as in ``neon.functions.deploy``, is None.
    """

    method: str
    path: str
    query: dict[str, str]
    body: Json = None


class RecordedResponses:
    """Sends recorded responses to every client in this process, while its block is active.

    It handles the requests to ``base_url``. The default is the base URL of clients that are created
    without one: ``NEON_API_HOST``, or Neon. Requests to other addresses are sent as usual. It uses
    aioresponses, so only one instance can be active at a time.
    """

    _is_active: ClassVar[bool] = False

    def __init__(self, base_url: str | None = None) -> None:
        url = base_url or os.environ.get(BASE_URL_VARIABLE) or DEFAULT_BASE_URL
        base_url = str(URL(url)).rstrip("/")  # yarl omits the default port, as the client does
        self.requests: list[RecordedRequest] = []
        """The requests so far, oldest first."""
        self._base_path = urlsplit(base_url).path
        self._responses: list[_Response] = []
        self._operations: dict[str, dict[str, _Operation]] = {}
        self._mock: Any = aioresponses(passthrough_unmatched=True)
        self._address = re.compile(re.escape(base_url) + "/")

    def __enter__(self) -> Self:
        if RecordedResponses._is_active:
            raise RuntimeError(
                "another RecordedResponses is active: exit it first, or add responses to it"
            )
        self._mock.start()
        RecordedResponses._is_active = True
        for method in METHODS:
            respond = partial(self._respond, method)
            self._mock.add(self._address, method, callback=respond, repeat=True)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._mock.stop()
        RecordedResponses._is_active = False

    def add(
        self,
        method: str,
        path: str,
        content: Content = None,
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        error: Exception | None = None,
        times: int | None = 1,
    ) -> None:
        """Record a response, or an ``error`` to raise, such as ``ConnectionResetError()``.

        ``path`` is relative to the base URL. A query in it must be part of the request's query.
        Responses to the same request are used in the order in which they were recorded, each
        ``times`` times; None means any number of times. Raise ValueError for an invalid argument.
        """
        if method not in METHODS:
            raise ValueError(f"method is {method!r}: expected one of {', '.join(METHODS)}")
        if not path.startswith("/"):
            raise ValueError(f"path is {path!r}: expected a path that starts with /")
        if times is not None and times < 1:
            raise ValueError(f"times is {times}: expected at least 1, or None for no limit")
        url = urlsplit(path)
        self._responses.append(
            _Response(
                method,
                unquote(url.path),
                _parse_query(url.query),
                error or _result(status, _encode_body(content), headers),
                times,
            )
        )

    def operation(
        self, project_id: str, operation_id: str, *statuses: str, **fields: object
    ) -> None:
        """Record an operation. Each poll returns the next of ``statuses``, or the last one again.

        A poll reads the operation by id, or in the list of its project, newest first. ``fields``
        add or replace fields of the record, such as ``action="start_compute"``.
        """
        if not statuses:
            raise ValueError("statuses is empty: expected at least one status")
        record = {"id": operation_id, "project_id": project_id, "action": "create_branch"}
        operations = self._operations.setdefault(project_id, {})
        operations[operation_id] = _Operation({**record, **fields}, statuses)

    def _respond(
        self,
        method: str,
        url: URL,
        *,
        headers: Mapping[str, str],
        data: Payload | None = None,
        **_unused: object,
    ) -> CallbackResult:
        path = url.path.removeprefix(self._base_path)
        query = _parse_query(url.raw_query_string)
        body: Json = None
        if data is not None and headers.get("Content-Type") == JSON:
            body = msgspec.json.decode(data.decode())
        request = RecordedRequest(method, path, query, body)
        self.requests.append(request)
        response = next((each for each in self._responses if each.matches(request)), None)
        if response is None:
            return self._poll_operations(request)
        if response.times is not None:
            response.times -= 1
        if isinstance(response.outcome, Exception):
            raise response.outcome
        return response.outcome

    def _poll_operations(self, request: RecordedRequest) -> CallbackResult:
        match request.method, request.path.split("/")[1:]:
            case "GET", ["projects", project_id, "operations"] if project_id in self._operations:
                newest_first = reversed(self._operations[project_id].values())
                records = [operation.poll() for operation in newest_first]
                return _result(200, msgspec.json.encode({"operations": records}))
            case "GET", ["projects", project_id, "operations", id] if id in self._operations.get(
                project_id, ()
            ):
                record = self._operations[project_id][id].poll()
                return _result(200, msgspec.json.encode({"operation": record}))
            case _:
                raise UnrecordedRequestError(self._explain_unrecorded(request))

    def _explain_unrecorded(self, request: RecordedRequest) -> str:
        recorded = [str(response) for response in self._responses]
        recorded += [
            f"GET /projects/{project_id}/operations/{id}"
            for project_id, operations in self._operations.items()
            for id in operations
        ]
        target = _format_request(request.method, request.path, request.query)
        return "\n  ".join(
            [f"no response is recorded for {target}; recorded requests:", *(recorded or ["none"])]
        )


class _Response(msgspec.Struct):
    """A recorded response, or the error in its place, and how many more ``times`` it is used."""

    method: str
    path: str
    query: dict[str, str]
    outcome: CallbackResult | Exception
    times: int | None

    def matches(self, request: RecordedRequest) -> bool:
        return (
            self.times != 0
            and (self.method, self.path) == (request.method, request.path)
            and self.query.items() <= request.query.items()
        )

    def __str__(self) -> str:
        used_up = " (used up)" if self.times == 0 else ""
        return f"{_format_request(self.method, self.path, self.query)}{used_up}"


class _Operation:
    """An operation that reaches its next status with each poll."""

    def __init__(self, record: dict[str, object], statuses: Sequence[str]) -> None:
        self._record = record
        self._statuses = statuses
        self._polls = 0
        # The present, so that this record is newer than other recordings of the operation.
        self._created_at = datetime.now(UTC)

    def poll(self) -> dict[str, object]:
        step = min(self._polls, len(self._statuses) - 1)
        self._polls += 1
        return {
            "status": self._statuses[step],
            "created_at": self._created_at,
            "updated_at": self._created_at + timedelta(seconds=step),
            "failures_count": 0,
            **self._record,
        }


_NO_WRITER: Any = SimpleNamespace(output_size=0)
_RESPONSE: Any = (
    # aiohttp 3.14 and later read the size of the request from its writer. aioresponses up to 0.7.9
    # passes no writer.
    partial(ClientResponse, stream_writer=_NO_WRITER)
    if "stream_writer" in inspect.signature(ClientResponse).parameters
    else ClientResponse
)


def _result(status: int, body: bytes, headers: Mapping[str, str] | None = None) -> CallbackResult:
    return CallbackResult(
        status=status, body=body, headers=dict(headers or {}), response_class=_RESPONSE
    )


def _encode_body(content: Content) -> bytes:
    if content is None:
        return b""
    if isinstance(content, bytes):
        return content
    if isinstance(content, str):
        return content.encode()
    if isinstance(content, Path):
        return content.read_bytes()
    return msgspec.json.encode(content, enc_hook=_reveal)


def _reveal(value: object) -> str:
    if isinstance(value, Secret):
        return value.reveal()
    raise TypeError(f"cannot encode a value of type {type(value).__name__} as JSON")


def _parse_query(query: str) -> dict[str, str]:
    parsed = parse_qs(query, keep_blank_values=True)
    return {name: ",".join(values) for name, values in parsed.items()}


def _format_request(method: str, path: str, query: Mapping[str, str]) -> str:
    pairs = "&".join(f"{name}={value}" for name, value in query.items())
    return f"{method} {path}{'?' if pairs else ''}{pairs}"
