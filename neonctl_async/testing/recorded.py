"""Answers without a server: needs ``neonctl-async[testing]``.

::

    with RecordedResponses() as answers:
        answers.add("POST", "/projects/p-1/branches", Path("create-branch.json"), status=201)
        answers.operation("p-1", "op-1", "running", "finished")
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
        "recorded answers need aioresponses: install neonctl-async[testing]"
    ) from _missing
import msgspec
from aiohttp import BytesPayload, ClientResponse
from yarl import URL

from neonctl_async.config import BASE_URL_VARIABLE, DEFAULT_BASE_URL
from neonctl_async.models.secret import Secret
from neonctl_async.transport.protocol import Json

Content: TypeAlias = (
    Path | bytes | str | msgspec.Struct | Mapping[str, object] | Sequence[object] | None
)
"""A body: a file of it, its bytes or text, or what is encoded to JSON. ``None`` is empty."""

METHODS = ("GET", "POST", "PATCH", "PUT", "DELETE")


class UnrecordedRequestError(AssertionError):
    """There is no recorded answer to a request. No retry and no wait goes on after it."""


class RecordedRequest(msgspec.Struct, frozen=True):
    """What was asked: ``path`` is relative to the base URL, ``body`` as it was before JSON."""

    method: str
    path: str
    query: dict[str, str]
    body: Json = None


class RecordedResponses:
    """Answers the requests to ``base_url`` of every client in this process while it is entered.

    It is what it is for a client: left out, ``NEON_API_HOST`` or the platform's. Built on
    aioresponses, of which there is one at a time. Requests to other addresses go there.
    """

    _is_entered: ClassVar[bool] = False

    def __init__(self, base_url: str | None = None) -> None:
        named = base_url or os.environ.get(BASE_URL_VARIABLE) or DEFAULT_BASE_URL
        base_url = str(URL(named)).rstrip("/")  # without a port that goes without saying
        self.requests: list[RecordedRequest] = []
        """What was asked, in order."""
        self._base_path = urlsplit(base_url).path
        self._answers: list[_Answer] = []
        self._operations: dict[str, dict[str, _Operation]] = {}
        self._mock: Any = aioresponses(passthrough_unmatched=True)
        self._address = re.compile(re.escape(base_url) + "/")

    def __enter__(self) -> Self:
        if RecordedResponses._is_entered:
            raise RuntimeError(
                "a RecordedResponses is entered already: leave it first, or add to it"
            )
        self._mock.start()
        RecordedResponses._is_entered = True
        for method in METHODS:
            answer = partial(self._answer, method)
            self._mock.add(self._address, method, callback=answer, repeat=True)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._mock.stop()
        RecordedResponses._is_entered = False

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
        """Record an answer, or an ``error`` such as ``ConnectionResetError()`` in its place.

        ``path`` is relative to the base URL; what its query names a request must ask for, beside
        anything else. Answers to the same request are given in the order recorded, each so many
        ``times``, with None for ever.
        """
        if method not in METHODS:
            raise ValueError(f"method is {method!r}: one of {', '.join(METHODS)}")
        if not path.startswith("/"):
            raise ValueError(f"path is {path!r}: expected one that begins with /")
        if times is not None and times < 1:
            raise ValueError(f"times is {times}: at least 1, or None for ever")
        url = urlsplit(path)
        self._answers.append(
            _Answer(
                method,
                unquote(url.path),
                _query(url.query),
                error or _result(status, _body(content), headers),
                times,
            )
        )

    def operation(
        self, project_id: str, operation_id: str, *statuses: str, **fields: object
    ) -> None:
        """Record an operation: each look at it finds the next of ``statuses``, or still the last.

        By id or in its project's list, whose newest it is. ``fields`` are further ones of its
        records, or others: ``action="start_compute"``.
        """
        if not statuses:
            raise ValueError("an operation has one status at least")
        record = {"id": operation_id, "project_id": project_id, "action": "create_branch"}
        of_project = self._operations.setdefault(project_id, {})
        of_project[operation_id] = _Operation({**record, **fields}, statuses)

    def _answer(
        self, method: str, url: URL, *, data: BytesPayload | None = None, **_more: object
    ) -> CallbackResult:
        path = url.path.removeprefix(self._base_path)
        request = RecordedRequest(method, path, _query(url.raw_query_string), _sent(data))
        self.requests.append(request)
        answer = next((one for one in self._answers if one.is_for(request)), None)
        if answer is None:
            return self._look(request)
        if answer.times is not None:
            answer.times -= 1
        if isinstance(answer.outcome, Exception):
            raise answer.outcome
        return answer.outcome

    def _look(self, request: RecordedRequest) -> CallbackResult:
        match request.method, request.path.split("/")[1:]:
            case "GET", ["projects", project_id, "operations"] if project_id in self._operations:
                newest = [one.look() for one in reversed(self._operations[project_id].values())]
                return _result(200, msgspec.json.encode({"operations": newest}))
            case "GET", ["projects", project_id, "operations", id] if id in self._operations.get(
                project_id, ()
            ):
                record = self._operations[project_id][id].look()
                return _result(200, msgspec.json.encode({"operation": record}))
            case _:
                raise UnrecordedRequestError(self._why_unanswered(request))

    def _why_unanswered(self, request: RecordedRequest) -> str:
        asked = f"{request.method} {request.path}"
        query = "&".join(f"{name}={value}" for name, value in request.query.items())
        recorded = [str(answer) for answer in self._answers]
        recorded += [
            f"GET /projects/{project_id}/operations/{id}"
            for project_id, operations in self._operations.items()
            for id in operations
        ]
        return "\n  ".join(
            [
                f"no answer is recorded to {asked}{'?' if query else ''}{query}; recorded are",
                *(recorded or ["none"]),
            ]
        )


class _Answer(msgspec.Struct):
    """An answer that was recorded, and how often it is still to be given."""

    method: str
    path: str
    query: dict[str, str]
    outcome: CallbackResult | Exception
    times: int | None

    def is_for(self, request: RecordedRequest) -> bool:
        return (
            self.times != 0
            and (self.method, self.path) == (request.method, request.path)
            and self.query.items() <= request.query.items()
        )

    def __str__(self) -> str:
        query = "&".join(f"{name}={value}" for name, value in self.query.items())
        used_up = " (given already)" if self.times == 0 else ""
        return f"{self.method} {self.path}{'?' if query else ''}{query}{used_up}"


class _Operation:
    """An operation that goes on by a status a look."""

    def __init__(self, record: dict[str, object], statuses: Sequence[str]) -> None:
        self._record = record
        self._statuses = statuses
        self._looks = 0
        # Now, so that whatever was recorded of it otherwise is older.
        self._created_at = datetime.now(UTC)

    def look(self) -> dict[str, object]:
        step = min(self._looks, len(self._statuses) - 1)
        self._looks += 1
        return {
            "status": self._statuses[step],
            "created_at": self._created_at,
            "updated_at": self._created_at + timedelta(seconds=step),
            "failures_count": 0,
            **self._record,
        }


_NO_WRITER: Any = SimpleNamespace(output_size=0)
_RESPONSE: Any = (
    # From aiohttp 3.14 on a response asks what wrote its request how much that was; aioresponses
    # up to 0.7.9 names nothing of the kind.
    partial(ClientResponse, stream_writer=_NO_WRITER)
    if "stream_writer" in inspect.signature(ClientResponse).parameters
    else ClientResponse
)


def _result(status: int, body: bytes, headers: Mapping[str, str] | None = None) -> CallbackResult:
    return CallbackResult(
        status=status, body=body, headers=dict(headers or {}), response_class=_RESPONSE
    )


def _body(content: Content) -> bytes:
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
    raise TypeError(f"a {type(value).__name__} has no form in JSON")


def _sent(data: BytesPayload | None) -> Json:
    return None if data is None else msgspec.json.decode(data.decode())


def _query(query: str) -> dict[str, str]:
    every = parse_qs(query, keep_blank_values=True)
    return {name: ",".join(values) for name, values in every.items()}
