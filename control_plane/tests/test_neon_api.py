"""Neon's synchronous client, neon-api 0.3.0, unchanged, against the local control plane."""

import asyncio
import inspect
from importlib import import_module
from typing import Any

import pytest

from control_plane.tests.client import Client
from neonctl_local import ManualClock

# Imported by name, because neon-api has no types.
NeonAPI: Any = import_module("neon_api").NeonAPI
NeonAPIError: type[Exception] = import_module("neon_api.exceptions").NeonAPIError


class Recorded:
    """A client that records the names of the methods that are called."""

    # Any: neon-api is not typed.
    def __init__(self, neon: Any) -> None:
        self.neon = neon
        self.called: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        self.called.add(name)
        return getattr(self.neon, name)


def client(api: Client, monkeypatch: pytest.MonkeyPatch) -> Recorded:
    monkeypatch.setenv("NEON_API_KEY", api.key)
    neon = NeonAPI.from_environ()
    neon.base_url = f"{api.base_url}/"
    return Recorded(neon)


# Any: neon-api is not typed.
def account_and_keys(neon: Any) -> None:
    me = neon.me()
    created = neon.api_key_create(key_name="mine")
    assert created.created_by == me.id
    assert [key.name for key in neon.api_keys()] == ["mine", "first key"]
    assert NeonAPI(created.key, base_url=neon.base_url).me() == me
    assert neon.api_key_revoke(created.id).revoked is True
    with pytest.raises(NeonAPIError, match="API key is not valid"):
        NeonAPI(created.key, base_url=neon.base_url).me()


def projects(neon: Any) -> str:
    created = neon.project_create(project={"name": "shop"}).project
    assert neon.project(created.id).project.name == "shop"
    assert neon.project_update(created.id, project={"name": "store"}).project.name == "store"
    assert [project.name for project in neon.projects(limit=5).projects] == ["store"]
    assert neon.projects(shared=True).projects == []
    granted = neon.project_permissions_grant(created.id, email="friend@example.com")
    assert neon.project_permissions(created.id).project_permissions == [granted]
    # This method sends a request that Neon does not publish.
    with pytest.raises(NeonAPIError, match="DELETE is not allowed"):
        neon.project_permissions_revoke(created.id, permission_id=granted.id)
    uri = neon.connection_uri(created.id, "neondb", "neondb_owner")
    assert uri.uri.startswith("postgresql://neondb_owner:")
    return str(created.id)


def branches(neon: Any, project_id: str) -> str:
    created = neon.branch_create(
        project_id, branch={"name": "preview"}, endpoints=[{"type": "read_write"}]
    )
    branch_id = str(created.branch.id)
    assert [op.action.value for op in created.operations] == ["create_branch", "start_compute"]
    assert neon.branch(project_id, branch_id).branch.name == "preview"
    renamed = neon.branch_update(project_id, branch_id, branch={"name": "staging"})
    assert renamed.branch.name == "staging"
    assert neon.branch_set_as_primary(project_id, branch_id).branch.primary is True
    assert len(neon.branches(project_id, limit=9).branches) == 2
    spare = neon.branch_create(project_id).branch.id
    assert neon.branch_delete(project_id, spare).branch.id == spare
    return branch_id


def computes(neon: Any, project_id: str, branch_id: str) -> None:
    spec = {"branch_id": branch_id, "type": "read_only"}
    created = neon.endpoint_create(project_id, endpoint=spec).endpoint
    assert neon.endpoint(project_id, created.id).endpoint.type.value == "read_only"
    changed = neon.endpoint_update(project_id, created.id, endpoint={"pooler_enabled": True})
    assert changed.endpoint.pooler_enabled is True
    suspended = neon.endpoint_suspend(project_id, created.id)
    assert [op.action.value for op in suspended.operations] == ["suspend_compute"]
    assert neon.endpoint_start(project_id, created.id).operations
    assert len(neon.endpoints(project_id).endpoints) == 3
    assert neon.endpoint_delete(project_id, created.id).endpoint.id == created.id


def databases_and_roles(neon: Any, project_id: str, branch_id: str) -> None:
    where = (project_id, branch_id)
    role = neon.role_create(*where, "alex").role
    assert neon.role(*where, "alex").role.name == "alex"
    assert [found.name for found in neon.roles(*where).roles] == ["neondb_owner", "alex"]
    assert neon.role_password_reveal(*where, "alex").password == role.password
    assert neon.role_password_reset(*where, "alex").role.password != role.password
    spec = {"name": "shop", "owner_name": "alex"}
    assert neon.database_create(*where, database=spec).database.name == "shop"
    assert neon.database(*where, "shop").database.owner_name == "alex"
    renamed = neon.database_update(*where, "shop", database={"name": "store"})
    assert renamed.database.name == "store"
    assert len(neon.databases(*where, limit=9, cursor="").databases) == 2
    assert neon.database_delete(*where, "store").database.name == "store"
    assert neon.role_delete(*where, "alex").role.name == "alex"


def operations(neon: Any, project_id: str) -> None:
    listed = neon.operations(project_id, limit=1000).operations
    assert len(listed) > 10
    read = neon.operation(project_id, listed[0].id).operation
    assert (read.id, read.action, read.project_id) == (listed[0].id, listed[0].action, project_id)
    assert neon.operations(project_id, limit=1, cursor="2026-01-01T00:00:00Z").operations == []


async def test_neon_api_calls_work_unchanged(
    api: Client, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    neon = client(api, monkeypatch)

    def run() -> None:
        account_and_keys(neon)
        project_id = projects(neon)
        branch_id = branches(neon, project_id)
        clock.advance(5)
        computes(neon, project_id, branch_id)
        databases_and_roles(neon, project_id, branch_id)
        operations(neon, project_id)
        assert neon.project_delete(project_id).project.id == project_id

    await asyncio.to_thread(run)
    assert {request.status for request in api.control_plane.requests} == {200, 201, 401, 405}
    methods = {name for name, _ in inspect.getmembers(NeonAPI, callable) if name[0] != "_"}
    assert neon.called - {"base_url"} == methods - {"from_environ"}
