"""The fixed answers: a project's operations as the platform tells them, with real cursors."""

import datetime as dt
import random
import uuid
from collections.abc import Iterator
from pathlib import Path

import msgspec

STORED = 20_000
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


def _operations() -> Iterator[_Operation]:
    """The same operations in every run, newest first, a minute apart."""
    rng = random.Random(484331)
    for n in range(STORED):
        created = _NEWEST - dt.timedelta(minutes=n)
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


def _at(moment: dt.datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


class Answers(msgspec.Struct, frozen=True):
    """Where in a folder the answers lie."""

    operation_id: str
    files: dict[str, str]
    """The name of the page's file by the cursor that leads to it; the first by an empty one."""


def write(folder: Path) -> Answers:
    """Write one operation, and all pages of their list, which an empty one ends."""
    operations = list(_operations())
    (folder / "operation.json").write_bytes(msgspec.json.encode({"operation": operations[0]}))
    files: dict[str, str] = {}
    cursor = ""
    for first in range(0, STORED + 1, PAGE):
        page = operations[first : first + PAGE]
        name = files[cursor] = f"page-{first // PAGE}.json"
        cursor = page[-1].created_at if page else cursor
        body = {"operations": page, "pagination": {"cursor": cursor}}
        (folder / name).write_bytes(msgspec.json.encode(body))
    return Answers(operations[0].id, files)
