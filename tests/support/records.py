"""Records of the API for the tests."""

import re
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from neonctl_async import NeonClient, Operation, OperationRef, OperationStatus, RateBudget
from neonctl_async.types import OperationAction
from tests.support.server import MisbehavingServer, Respond, in_sequence

API_KEY = "napi_test_key_that_must_never_show"
PROJECT = "late-frost-12345678"
SECRETS = re.compile(
    rb"npg_[\w-]{16}|(?:napi_|neon_[a-z]+_key_)[0-9a-f]{32}|nt_live_[0-9a-f]{12}_|nsk_live_[0-9a-f]{64}"
)
"""The API keys, passwords and secrets of credentials that the local control plane generates."""
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)

JsonObject = dict[str, object]


def operation_json(
    id: str = "op-1",
    status: str = "running",
    *,
    project_id: str = PROJECT,
    at: float = 0.0,
    **more: object,
) -> JsonObject:
    """Return the JSON of an operation that was updated ``at`` seconds after ``EPOCH``."""
    updated = EPOCH + timedelta(seconds=at)
    return {
        "id": id,
        "project_id": project_id,
        "branch_id": "br-quiet-sun-87654321",
        "action": "create_branch",
        "status": status,
        "failures_count": 0,
        "created_at": EPOCH.isoformat(),
        "updated_at": updated.isoformat(),
        **more,
    }


def operation(id: str = "op-1", status: str = "running", *, project_id: str = PROJECT) -> Operation:
    return Operation(
        id=id,
        project_id=project_id,
        branch_id="br-quiet-sun-87654321",
        action=OperationAction.CREATE_BRANCH,
        status=OperationStatus(status),
        created_at=EPOCH,
        updated_at=EPOCH,
    )


def branch_json(id: str = "br-quiet-sun-87654321") -> JsonObject:
    return {
        "id": id,
        "project_id": PROJECT,
        "name": "preview",
        "current_state": "init",
        "created_at": EPOCH.isoformat(),
        "updated_at": EPOCH.isoformat(),
    }


def statuses(records: Iterable[Operation]) -> list[tuple[str, str]]:
    """Return the id and the status of each operation."""
    return [(record.id, record.status) for record in records]


def ref(id: str) -> OperationRef:
    """Return a reference to an operation of the tests' project."""
    return OperationRef(project_id=PROJECT, id=id)


def client_of(server: MisbehavingServer, **settings: Any) -> NeonClient:
    """Return a client of ``server`` without rate limits."""
    settings.setdefault("budget", RateBudget.unlimited())
    return NeonClient(API_KEY, base_url=server.base_url, **settings)


@asynccontextmanager
async def responding(
    *responses: Respond, **settings: Any
) -> AsyncGenerator[tuple[MisbehavingServer, NeonClient]]:
    """Run a server that sends each response once and repeats the last one, and a client of it."""
    server = MisbehavingServer(in_sequence(*responses))
    async with server, client_of(server, **settings) as neon:
        yield server, neon
