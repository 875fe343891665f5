"""The fixed answers: a project's operations as the platform tells them, with real cursors."""

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
    """Every field that the platform sends of an operation that went well, in its order."""

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


def _operations(stored: int) -> Iterator[_Operation]:
    """The same operations in every run, newest first, a minute apart."""
    rng = random.Random(484331)
    for n in range(stored):
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
            created_at=_at(created),
            updated_at=_at(created + dt.timedelta(milliseconds=took)),
            total_duration_ms=took,
        )


def _created(n: int) -> dt.datetime:
    return _NEWEST - dt.timedelta(minutes=n)


def _at(moment: dt.datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


def cursor_of(page: int) -> str | None:
    """What leads to a page; the first one is numbered 0."""
    return _at(_created(page * PAGE - 1)) if page else None


def write(folder: Path, stored: int) -> str:
    """Write an operation, and all pages of the list, which an empty one ends; answers its id."""
    operations = list(_operations(stored))
    (folder / "operation.json").write_bytes(msgspec.json.encode({"operation": operations[0]}))
    for page in range(stored // PAGE + 1):
        listed = operations[page * PAGE :][:PAGE]
        following = cursor_of(page + 1 if listed else page)
        body = {"operations": listed, "pagination": {"cursor": following}}
        (folder / f"page-{page}.json").write_bytes(msgspec.json.encode(body))
    return operations[0].id
