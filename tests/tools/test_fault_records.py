"""The faults of operation records in a fault campaign."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from neonctl_async import Operation, OperationStatus
from tests.support.records import PROJECT, JsonObject, operation_json
from tests.support.server import Received
from tools.faults.faults import PlaneResponse
from tools.faults.log import FaultLog
from tools.faults.records import FOREIGN_ID, FOREIGN_PROJECT, RECORD_FAULTS, RecordFaults

pytestmark = pytest.mark.virtual_time

PATH = f"/api/v2/projects/{PROJECT}/operations"
UPDATED_AT = "2026-01-01T00:00:00Z"
SECOND_BEFORE = "2025-12-31T23:59:59Z"


class AlwaysChosen(random.Random):
    """Chance that injects a fault whenever it can."""

    def random(self) -> float:
        return 0.0


class Content(msgspec.Struct):
    """The body of a response to a poll."""

    operations: list[Operation] = []
    operation: Operation | None = None


class Conversation:
    """The responses of one client, in which one operation has a fault."""

    def __init__(self, fault: str) -> None:
        self.log = FaultLog()
        self._faults = RecordFaults(AlwaysChosen(1), self.log, [fault])
        self._requests = 0
        self._exchange("POST", PATH, 201, {"operations": [operation_json()]})

    def poll(
        self, status: str = "running", *, in_list: bool = False
    ) -> tuple[int, list[Operation]]:
        """Return the status and the records of the response to a poll."""
        record = operation_json(status=status)
        if in_list:
            response = self._exchange("GET", PATH, 200, {"operations": [record]})
        else:
            response = self._exchange("GET", f"{PATH}/op-1", 200, {"operation": record})
        content = msgspec.json.decode(response.body, type=Content)
        single = [] if content.operation is None else [content.operation]
        return response.status, content.operations or single

    def polls(self, *statuses: str) -> list[str]:
        """Return the statuses in the responses to some polls of these statuses."""
        return [str(record.status) for status in statuses for record in self.poll(status)[1]]

    def _exchange(self, method: str, path: str, status: int, content: JsonObject) -> PlaneResponse:
        self._requests += 1
        headers = {"x-request-id": f"client{self._requests:08x}"}
        body = msgspec.json.encode(content)
        return self._faults.rewrite(
            Received(method, path, headers, b""), PlaneResponse(status, body)
        )


def ids_of(records: Sequence[Operation]) -> list[tuple[str, str]]:
    return [(record.project_id, record.id) for record in records]


async def test_older_record_follows_a_newer_one() -> None:
    conversation = Conversation("older record after a newer one")
    assert conversation.polls("running", "running", "finished", "finished", "finished") == [
        *("running", "scheduling", "scheduling", "scheduling", "finished")
    ]


async def test_terminal_record_is_a_second_older_than_the_first_record() -> None:
    conversation = Conversation("terminal record a second older")
    for status, updated_at in (("running", UPDATED_AT), ("finished", SECOND_BEFORE)):
        _, [record] = conversation.poll(status)
        assert record.updated_at == datetime.fromisoformat(updated_at)


@pytest.mark.parametrize("in_list", [False, True])
@pytest.mark.parametrize(
    ("fault", "project_id", "id"),
    [
        ("record of another operation", PROJECT, FOREIGN_ID),
        ("record of another project", FOREIGN_PROJECT, "op-1"),
    ],
)
async def test_foreign_records_come_before_the_real_one(
    fault: str, project_id: str, id: str, in_list: bool
) -> None:
    conversation = Conversation(fault)
    polled = [ids_of(conversation.poll(in_list=in_list)[1]) for _ in range(4)]
    assert polled == [[(project_id, id)]] * 3 + [[(PROJECT, "op-1")]]


@pytest.mark.parametrize(
    ("fault", "first", "list_status"),
    [
        ("404 for 1 to 3 s after the 201", 404, 200),
        ("404 for 1 to 3 s after a poll", 200, 200),
        ("404 for 1 to 3 s, lists too", 404, 404),
    ],
)
async def test_operation_is_missing_for_some_seconds(
    fault: str, first: int, list_status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation = Conversation(fault)
    assert conversation.poll()[0] == first
    assert conversation.poll() == (404, [])
    assert conversation.poll(in_list=True) == (list_status, [])
    monkeypatch.setattr("tools.faults.records.loop_seconds", lambda: 3.1)
    assert ids_of(conversation.poll(in_list=True)[1]) == [(PROJECT, "op-1")]


async def test_failed_record_is_followed_by_a_running_one() -> None:
    conversation = Conversation("failed at first, then running")
    assert conversation.polls("running", "running") == ["failed", "running"]
    assert conversation.log.failed == set()


@pytest.mark.parametrize(
    ("clock", "hours"), [("", 0), (", server an hour ahead", 1), (", server an hour behind", -1)]
)
async def test_clock_of_the_server_is_the_same_in_all_times(clock: str, hours: int) -> None:
    server_time = datetime.now(UTC) + timedelta(hours=hours)
    retried = Conversation(f"failed, retried soon{clock}")
    failed = Conversation(f"failed for good{clock}")
    for conversation, status, is_future in (
        (retried, "running", True),
        (failed, "finished", False),
    ):
        _, [record] = conversation.poll(status)
        moved = datetime.fromisoformat(UPDATED_AT) + timedelta(hours=hours)
        assert (record.status, record.updated_at) == (OperationStatus.FAILED, moved)
        assert record.retry_at is not None
        assert (record.retry_at > server_time) is is_future
        assert abs(record.retry_at - server_time) < timedelta(minutes=1)
    assert (retried.log.failed, failed.log.failed) == (set(), {"op-1"})


@pytest.mark.parametrize("fault", RECORD_FAULTS)
async def test_request_that_meets_a_fault_is_logged(fault: str) -> None:
    conversation = Conversation(fault)
    conversation.poll("finished")
    assert set(conversation.log.counts) == {fault}
    assert set(conversation.log.by_request) == {"client00000002"}
