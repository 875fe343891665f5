"""The records and responses of the simulated control plane."""

from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec
import pytest

from benchmarks.servers.control_plane import API, ControlPlane, Lifetime, Settings

EPOCH = datetime(2026, 1, 1, microsecond=700_000, tzinfo=UTC)


class Api:
    """A control plane whose clock the test sets."""

    def __init__(self, settings: Settings) -> None:
        self.now = 0.0
        self.plane = ControlPlane(settings, lambda: self.now, EPOCH)

    def send(self, method: str, path: str, content: object = None) -> Any:
        reply = self.plane.respond(method, API + path, msgspec.json.encode(content))
        return msgspec.json.decode(reply.body)

    def create(self, name: str) -> None:
        self.send("POST", "/projects/p/branches", {"branch": {"name": name}})

    def listed(self) -> list[dict[str, Any]]:
        return self.send("GET", "/projects/p/operations")["operations"]  # type: ignore[no-any-return] # JSON


def test_plus_sign_separates_parallel_operations_and_a_space_later_ones() -> None:
    api = Api(Settings())
    api.create("b 1+2 3!")
    for now, statuses in {
        0.0: ["scheduling", "running", "running"],
        1.5: ["scheduling", "running", "finished"],
        2.5: ["running", "finished", "finished"],
        5.0: ["failed", "finished", "finished"],
    }.items():
        api.now = now
        assert [record["status"] for record in api.listed()] == statuses
    assert api.plane.report().branches == {"b 1+2 3!": Lifetime(0.0, 5.0)}


def test_finished_operation_has_its_duration_without_the_time_in_the_queue() -> None:
    api = Api(Settings())
    api.create("b 1 2")
    api.now = 9.0
    assert [record["total_duration_ms"] for record in api.listed()] == [2000, 1000]


def test_records_can_lack_durations_and_fractions_of_seconds() -> None:
    api = Api(Settings(has_total_duration=False, has_whole_seconds=True))
    api.create("b 0.5")
    api.now = 9.0
    [record] = api.listed()
    assert "total_duration_ms" not in record
    assert record["created_at"] == "2026-01-01T00:00:00+00:00"
    assert record["updated_at"] == "2026-01-01T00:00:01+00:00"


def test_project_can_have_a_history() -> None:
    api = Api(Settings(history=("7", "8")))
    api.create("b 1")
    records = api.listed()
    assert [record.get("total_duration_ms") for record in records] == [None, 8000, 7000]
    assert all(record["status"] == "finished" for record in records[1:])
    assert records[1]["created_at"] < records[0]["created_at"]


def test_clock_of_the_service_can_be_stepped() -> None:
    api = Api(Settings(clock_offsets=((0.0, 3600.0), (2.0, -30.0))))
    for now, offset in {1.0: 3600.0, 2.0: -30.0}.items():
        api.now = now
        reply = api.plane.respond("GET", f"{API}/projects/p/operations", b"")
        expected = (EPOCH + timedelta(seconds=now + offset)).replace(microsecond=0)
        assert parsedate_to_datetime(reply.headers["Date"]) == expected


@pytest.mark.parametrize(
    "settings", [Settings(per_minute=1), Settings(per_route_per_second=1)], ids=["account", "route"]
)
def test_request_beyond_a_limit_is_refused_with_the_time_to_wait(settings: Settings) -> None:
    api = Api(settings)
    api.create("b 1")
    reply = api.plane.respond("POST", f"{API}/projects/p/branches", b"{}")
    assert reply.status == 429
    assert int(reply.headers["Retry-After"]) in {1, 60}
    assert api.plane.report().count(status=429) == 1


def test_locked_project_accepts_no_creation_until_its_operations_are_finished() -> None:
    api = Api(Settings(locks_projects=True))
    path = f"{API}/projects/{{}}/branches"

    def status(project_id: str, name: str) -> int:
        body = msgspec.json.encode({"branch": {"name": name}})
        return api.plane.respond("POST", path.format(project_id), body).status

    assert [status("p", "b1 1 2"), status("p", "b2 1"), status("q", "b3 1")] == [200, 423, 200]
    api.now = 2.9
    assert status("p", "b2 1") == 423
    api.now = 3.0
    assert status("p", "b2 1") == 200
    assert api.plane.report().branches["b2 1"] == Lifetime(3.0, 4.0)
