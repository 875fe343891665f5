"""The page for users of neon-api: its code runs, and its statements about neon-api are true."""

import asyncio
from collections.abc import AsyncIterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from neonctl_async import NeonClient
from neonctl_local import Durations, Fault, LocalControlPlane
from tests.support.pages import code_blocks, compiled, names_side_by_side

PAGE = Path(__file__).parents[2] / "docs" / "from-neon-api.md"
TEXT = PAGE.read_text(encoding="utf-8")
# Imported by name, because the package has no types.
NEON_API: Any = import_module("neon_api.client")


def no_sleep(_seconds: float) -> None:
    """Return at once, because the operations finish before the next request."""


@pytest.fixture
async def control_plane(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LocalControlPlane]:
    """The local control plane that neon-api uses in place of Neon.

    It locks no project: neon-api would meet 423s by chance, when it creates branches together.
    """
    durations = Durations(default=0.001)
    async with LocalControlPlane(durations=durations, lock="none") as control_plane:
        monkeypatch.setenv("NEON_API_KEY", control_plane.api_key)
        monkeypatch.setenv("NEON_API_HOST", control_plane.base_url)
        monkeypatch.setattr(NEON_API, "NEON_API_BASE_URL", f"{control_plane.base_url}/")
        monkeypatch.setattr("time.sleep", no_sleep)
        yield control_plane


async def test_code_of_neon_api_runs_from_top_to_bottom(
    control_plane: LocalControlPlane,
) -> None:
    def run() -> None:
        names: dict[str, object] = {}
        for line, code in code_blocks(TEXT, 'python title="neon-api"'):
            exec(compiled(PAGE, line, code), names)

    await asyncio.to_thread(run)
    async with NeonClient(control_plane.api_key, base_url=control_plane.base_url) as neon:
        [shop] = await neon.projects.list().collect()
        branches = await neon.branches.list(shop.id).collect()
    assert {"preview", "preview-3", "careful"} < {branch.name for branch in branches}


@pytest.mark.parametrize("status", [423, 429, 503])
async def test_neon_api_sends_each_request_once_and_its_error_has_no_status(
    control_plane: LocalControlPlane, status: int
) -> None:
    active = control_plane.inject(Fault(route="GET /users/me", status=status))
    with pytest.raises(NEON_API.NeonAPIError) as raised:
        await asyncio.to_thread(NEON_API.NeonAPI.from_environ().me)
    assert active.fired == 1
    error: Any = raised.value
    assert error.response is None
    assert error.__context__.response.status_code == status
    assert control_plane.api_key in error.__context__.request.headers["Authorization"]


async def test_lost_connection_raises_an_exception_of_requests(
    control_plane: LocalControlPlane,
) -> None:
    control_plane.inject(Fault(route="GET /users/me", drop=True))
    with pytest.raises(NEON_API.requests.ConnectionError) as raised:
        await asyncio.to_thread(NEON_API.NeonAPI.from_environ().me)
    assert not isinstance(raised.value, NEON_API.NeonAPIError)


def fields(record: object) -> set[str]:
    return set(vars(record))


@pytest.mark.usefixtures("control_plane")
async def test_neon_api_drops_cursors_and_the_operations_of_a_new_project() -> None:
    def run() -> None:
        neon = NEON_API.NeonAPI.from_environ()
        created = neon.project_create(project={"name": "shop"})
        assert fields(created) == {"project"}
        assert fields(neon.operations(created.project.id)) == {"operations"}
        branch = neon.branch_create(created.project.id)
        assert fields(branch) == {"branch", "operations"}
        role = neon.role_create(created.project.id, branch.branch.id, "alex").role
        assert role.password in repr(role)

    await asyncio.to_thread(run)


def test_neon_api_rejects_a_response_with_an_unknown_action() -> None:
    operation = {
        "id": "op-1",
        "project_id": "p-1",
        "action": "create_branch",
        "status": "running",
        "failures_count": 0,
        "created_at": "",
        "updated_at": "",
        "total_duration_ms": 0,
    }
    assert NEON_API.schema.OperationsResponse(operations=[operation])
    with pytest.raises(ValueError, match="action"):
        NEON_API.schema.OperationsResponse(operations=[operation | {"action": "unknown"}])


def test_table_lists_every_method_of_neon_api() -> None:
    listed = {name for theirs, _ in names_side_by_side(TEXT) for name in theirs}
    methods = {name for name in dir(NEON_API.NeonAPI) if not name.startswith("_")}
    assert listed - {"NeonAPIError"} == methods - {"from_environ"}


def test_table_names_existing_methods_of_this_library() -> None:
    neon = NeonClient("key")
    listed = {name for _, ours in names_side_by_side(TEXT) for name in ours}
    for name in listed - {"NeonError"}:
        resource, _, method = name.partition(".")
        assert resource == "created" or hasattr(getattr(neon, resource), method), name
