"""Faults of operation records: outdated, foreign, missing and failed records, and wrong clocks.

A fault of a request affects one response. These faults affect one operation in all responses to the
client that started it.
"""

import enum
import random
from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, cast

import msgspec

from tests.support.clock import now as loop_seconds
from tests.support.server import Received
from tools.campaign.clocks import suspended_seconds
from tools.campaign.faults import PlaneResponse, client_of_request, is_poll
from tools.campaign.outcomes import FaultLog

# Any: JSON of the API.
Record = dict[str, Any]

SHARE_OF_CALLS = 0.7
"""The share of calls that start operations of which one gets a fault."""
MISSING_SECONDS = (1.0, 3.0)
"""The shortest and the longest time for which an operation is missing."""
WRONG_POLLS = 3
"""The number of polls with a wrong record."""
FOREIGN_ID = "00000000-0000-4000-8000-000000000000"
FOREIGN_PROJECT = "another-project-00000000"
TIMES = frozenset({"created_at", "updated_at", "retry_at"})
_RETRY_IN, _RETRIED_AGO = timedelta(seconds=5), timedelta(seconds=10)


class Missing(enum.Enum):
    """A response without the record of an operation."""

    RECORD = enum.auto()
    """The request by id gets 404, and lists do not contain the operation."""
    LIST = enum.auto()
    """The request by id and lists of the project get 404."""


class Faulty(msgspec.Struct):
    """An operation with a fault.

    ``polls`` is the number of responses to polls that would contain its record.
    """

    fault: str
    client: str
    first: Record
    """The record in the response of the call that started the operation."""
    missing_seconds: float
    missing_since: float
    polls: int = 0

    @property
    def is_missing(self) -> bool:
        """True while the operation is missing."""
        return loop_seconds() < self.missing_since + self.missing_seconds


RecordFault = Callable[[Faulty, Record, datetime], Record | Missing]
"""Returns the record that the client gets. The parameters are the real one and the server time."""


def older_record(operation: Faulty, record: Record, _now: datetime) -> Record:
    """Send a newer record, and then an older one some times."""
    if operation.polls == 1:
        return {**record, "status": "running"}
    if operation.polls <= 1 + WRONG_POLLS:
        return {**record, "status": "scheduling", "updated_at": _second_before(operation.first)}
    return record


def older_terminal_record(operation: Faulty, record: Record, _now: datetime) -> Record:
    """Make the terminal record a second older than the first record."""
    if record["status"] == "finished":
        return {**record, "updated_at": _second_before(operation.first)}
    return record


def foreign_id(operation: Faulty, record: Record, _now: datetime) -> Record:
    """Send the record of another operation some times."""
    if operation.polls <= WRONG_POLLS:
        return {**record, "id": FOREIGN_ID, "status": "finished"}
    return record


def foreign_project(operation: Faulty, record: Record, _now: datetime) -> Record:
    """Send the record of an operation of another project some times."""
    if operation.polls <= WRONG_POLLS:
        return {**record, "project_id": FOREIGN_PROJECT, "status": "finished"}
    return record


def missing_at_first(operation: Faulty, record: Record, _now: datetime) -> Record | Missing:
    """Omit an operation that was just started."""
    return Missing.RECORD if operation.is_missing else record


def missing_after_poll(operation: Faulty, record: Record, _now: datetime) -> Record | Missing:
    """Send the record once, and omit it then."""
    if operation.polls == 1:
        operation.missing_since = loop_seconds()
        return {**record, "status": "running"}
    return Missing.RECORD if operation.is_missing else record


def missing_list(operation: Faulty, record: Record, _now: datetime) -> Record | Missing:
    """Respond 404 also to lists of the project."""
    return Missing.LIST if operation.is_missing else record


def failed_at_first(operation: Faulty, record: Record, _now: datetime) -> Record:
    """Send a failed record without ``retry_at`` once, as if Neon had not planned a retry yet."""
    return _failed(record) if operation.polls == 1 else record


def retry_to_come(operation: Faulty, record: Record, now: datetime) -> Record:
    """Send a failed record some times, and the retry is in the future of the server."""
    if operation.polls <= WRONG_POLLS:
        return {**_failed(record), "retry_at": _format(now + _RETRY_IN)}
    return record


def failed_for_good(operation: Faulty, record: Record, now: datetime) -> Record:
    """Send a failed record at the end, and the last retry is in the past of the server."""
    del operation
    if record["status"] == "finished":
        return {**_failed(record), "retry_at": _format(now - _RETRIED_AGO)}
    return record


CLOCKS = {"": 0.0, ", server an hour ahead": 3600.0, ", server an hour behind": -3600.0}
"""The clocks of servers, and the seconds by which they are ahead."""
RECORD_FAULTS: dict[str, RecordFault] = {
    "older record after a newer one": older_record,
    "terminal record a second older": older_terminal_record,
    "record of another operation": foreign_id,
    "record of another project": foreign_project,
    "404 for 1 to 3 s after the 201": missing_at_first,
    "404 for 1 to 3 s after a poll": missing_after_poll,
    "404 for 1 to 3 s, lists too": missing_list,
    "failed at first, then running": failed_at_first,
    **{f"failed, retried soon{clock}": retry_to_come for clock in CLOCKS},
    **{f"failed for good{clock}": failed_for_good for clock in CLOCKS},
}


class RecordFaults:
    """Injects faults into the records of operations.

    Each client sees one server, so the clock of the server is the same in all of its responses.
    """

    def __init__(self, chance: random.Random, log: FaultLog, faults: Collection[str]) -> None:
        self._chance = chance
        self._log = log
        self._faults = [name for name in RECORD_FAULTS if name in faults]
        self._clocks = sorted({_clock_of(name) or 0.0 for name in self._faults}) or [0.0]
        self._clocks_of_clients: dict[str, float] = {}
        self._operations: dict[str, Faulty] = {}

    def rewrite(self, request: Received, response: PlaneResponse) -> PlaneResponse:
        """Return the response that the client gets."""
        client = client_of_request(request)
        if client not in self._clocks_of_clients:
            self._clocks_of_clients[client] = self._chance.choice(self._clocks)
        offset = timedelta(seconds=self._clocks_of_clients[client] + suspended_seconds())
        now = datetime.now(UTC) + offset
        headers = {"Date": format_datetime(now, usegmt=True)}
        if response.status >= 300 or not response.body:
            return PlaneResponse(response.status, response.body, headers)
        content = msgspec.json.decode(response.body)
        _move_times(content, timedelta(seconds=self._clocks_of_clients[client]))
        if response.status == 201:
            self._draw(client, content.get("operations", []))
        elif is_poll(request) and not self._edit(request, content, now):
            return PlaneResponse(404, b'{"message": "not found"}', headers)
        return PlaneResponse(response.status, msgspec.json.encode(content), headers)

    def _draw(self, client: str, operations: list[Record]) -> None:
        """Choose a fault for one of the operations that a call has started."""
        clock = self._clocks_of_clients[client]
        faults = [name for name in self._faults if _clock_of(name) in (None, clock)]
        if operations and faults and self._chance.random() < SHARE_OF_CALLS:
            fault = self._chance.choice(faults)
            first = self._chance.choice(operations)
            seconds = self._chance.uniform(*MISSING_SECONDS)
            faulty = Faulty(fault, client, first, seconds, missing_since=loop_seconds())
            self._operations[first["id"]] = faulty
            if RECORD_FAULTS[fault] is failed_for_good:
                self._log.failed.add(first["id"])

    def _edit(self, request: Received, content: Record, now: datetime) -> bool:
        """Replace the records in the response to a poll. Return False if it is a 404."""
        records = content["operations"] if "operations" in content else [content["operation"]]
        self._log.finished |= {one["id"] for one in records if one["status"] == "finished"}
        edited = [self._edit_record(request, record, now) for record in records]
        kept = [one for one in edited if not isinstance(one, Missing)]
        if [one["project_id"] for one in kept] == [one["project_id"] for one in records]:
            self._log.add_terminal_records(request.headers["x-request-id"], self._settled(kept))
        if Missing.LIST in edited:
            return False
        if "operations" in content:
            content["operations"] = kept
        else:
            content["operation"] = kept[0] if kept else None
        return "operations" in content or bool(kept)

    def _settled(self, records: list[Record]) -> set[str]:
        """Return the operations whose records are true and terminal."""
        finished = {one["id"] for one in records if one["status"] == "finished"}
        failed = {one["id"] for one in records if one["status"] == "failed"}
        return finished - self._log.failed | failed & self._log.failed

    def _edit_record(self, request: Received, record: Record, now: datetime) -> Record | Missing:
        operation = self._operations.get(record["id"])
        if operation is None or operation.client != client_of_request(request):
            return record
        operation.polls += 1
        edited = RECORD_FAULTS[operation.fault](operation, record, now)
        if edited != record:
            self._log.add_record_fault(request.headers["x-request-id"], operation.fault)
        return edited


def _clock_of(fault: str) -> float | None:
    """Return the clock of the servers that have a fault, or None for all servers."""
    if RECORD_FAULTS[fault] not in (retry_to_come, failed_for_good):
        return None
    return next((seconds for clock, seconds in CLOCKS.items() if clock and clock in fault), 0.0)


def _failed(record: Record) -> Record:
    return {**record, "status": "failed", "failures_count": 1, "error": "a compute did not start"}


def _second_before(record: Record) -> str:
    return _format(datetime.fromisoformat(record["updated_at"]) - timedelta(seconds=1))


def _format(time: datetime) -> str:
    """Format a time as the API does, in whole seconds."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _move_times(content: object, offset: timedelta) -> None:
    """Move all times in a JSON object to the clock of the server."""
    match content:
        case list():
            for item in cast("list[object]", content):
                _move_times(item, offset)
        case dict():
            record = cast("Record", content)
            for name in TIMES & record.keys():
                if record[name] is not None:
                    record[name] = _format(datetime.fromisoformat(record[name]) + offset)
            for value in record.values():
                _move_times(value, offset)
        case _:
            pass
