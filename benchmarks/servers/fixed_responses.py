"""Fixed response bodies: the operations of one project, with all fields and real cursors."""

import datetime as dt
import random
import uuid
from collections.abc import Iterator
from pathlib import Path

import msgspec

PAGE = 1_000
PROJECT_ID = "autumn-disk-484331"
_NEWEST = dt.datetime(2026, 11, 20, 8, 47, 52, tzinfo=dt.UTC)
_ACTIONS = ("create_branch", "start_compute", "apply_config", "suspend_compute", "delete_timeline")


class _Operation(msgspec.Struct, kw_only=True):
    """The fields that Neon sends for a finished operation, in Neon's order."""

    id: str
    project_id: str
    branch_id: str
    endpoint_id: str
    action: str
    status: str
    failures_count: int
    created_at: str
    updated_at: str
    total_duration_ms: int


def _operations(count: int) -> Iterator[_Operation]:
    """Yield the same operations in every run, newest first, a minute apart."""
    rng = random.Random(484331)
    for n in range(count):
        created = _created(n)
        took = rng.randrange(200, 30_000)
        yield _Operation(
            id=str(uuid.UUID(int=rng.getrandbits(128), version=4)),
            project_id=PROJECT_ID,
            branch_id=f"br-wispy-dew-{rng.randrange(100_000, 999_999)}",
            endpoint_id=f"ep-orange-art-{rng.randrange(100_000, 999_999)}",
            action=rng.choice(_ACTIONS),
            status="finished",
            failures_count=0,
            created_at=_timestamp(created),
            updated_at=_timestamp(created + dt.timedelta(milliseconds=took)),
            total_duration_ms=took,
        )


def _created(n: int) -> dt.datetime:
    return _NEWEST - dt.timedelta(minutes=n)


def _timestamp(moment: dt.datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def cursor_of(page: int) -> str | None:
    """Return the cursor that requests a page. Page 0 needs none."""
    return _timestamp(_created(page * PAGE - 1)) if page else None


def write(folder: Path, count: int) -> str:
    """Write one operation and all pages of the list, the last one empty; return the id."""
    operations = list(_operations(count))
    (folder / "operation.json").write_bytes(msgspec.json.encode({"operation": operations[0]}))
    for page in range(count // PAGE + 1):
        listed = operations[page * PAGE :][:PAGE]
        following = cursor_of(page + 1 if listed else page)
        body = {"operations": listed, "pagination": {"cursor": following}}
        (folder / f"page-{page}.json").write_bytes(msgspec.json.encode(body))
    return operations[0].id
