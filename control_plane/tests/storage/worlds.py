"""Data files with records of every kind: a world of accounts, and one of real databases."""

import asyncio
import sqlite3
import tempfile
from contextlib import closing
from functools import cache
from pathlib import Path

from control_plane.tests.client import Client, Http, branch_path_of, serve
from control_plane.tests.driven import DrivenControlPlane, DrivenProject
from control_plane.tests.keys import member_key, organization_key, project_key
from neonctl_local import Durations, ManualClock
from neonctl_local.engine import operations
from neonctl_local.engine.lifecycle import Failure
from neonctl_local.storage import schema

DAY = 86400
WORLDS = ("accounts", "real")
REGION = "aws-us-east-2"
RULE = {
    "database_name": "neondb",
    "schema_name": "public",
    "table_name": "users",
    "column_name": "email",
    "masking_function": "anon.fake_email()",
}


async def make_world(data: Path) -> str:
    """Create a data file with records of every kind. Return the first API key."""
    clock = ManualClock()
    durations = Durations(default=1, scheduling=0.5)
    async with serve(data=data, clock=clock, durations=durations) as api:
        project_id = (await api.project(name="shop"))["project"]["id"]
        clock.advance(10)
        await _accounts(api, project_id)
        await _invitations(api)
        await _projects(api, clock, project_id)
        await _branches(api, clock, project_id)
        await _access(api, project_id)
        await _services(api, project_id)
        await _credentials(api, project_id)
        await _archived(api, clock)
        await _operations(api, clock)
        return api.key


async def _accounts(api: Client, project_id: str) -> None:
    """Create users, members of both roles, and keys of all kinds, some of them revoked."""
    plane = api.control_plane
    await member_key(api, "admin", "ada")
    user_id, _ = await member_key(api, "member", "ben")
    await api.new_user_key("zoë@example.com")
    gone, _ = await member_key(api, "member", "gone")
    await plane.remove_member(plane.org_id, gone)
    other = await plane.create_organization("Other", admin_id=user_id)
    await plane.add_member(other, plane.user_id, "member")
    revoked, _ = await organization_key(api, "revoked")
    await organization_key(api)
    await project_key(api, project_id)
    await api.request("DELETE", f"{api.organization_path}/api_keys/{revoked}")
    personal = await api.request("POST", "/api_keys", {"key_name": "Schlüssel 🔑"})
    await api.request("DELETE", f"/api_keys/{personal['id']}")


async def _invitations(api: Client) -> None:
    """Invite people, one of whom joins, and one of whom is not welcome any more."""
    path = f"{api.organization_path}/invitations"
    await api.new_user_key("joined@example.com")
    names = ("joined", "invited", "uninvited")
    specs = [{"email": f"{name}@example.com", "role": "member"} for name in names]
    created = await api.request("POST", path, {"invitations": specs})
    console = api.base_url.removesuffix("/api/v2") + "/local/v1"
    async with Http(console, api.key) as people:
        revoked = created["invitations"][2]["id"]
        await people.send("DELETE", f"/invitations/{revoked}")
    limit = {"spending_limit_cents": 5000}
    await api.request("PUT", f"{api.organization_path}/billing/spending_limit", limit)


async def _projects(api: Client, clock: ManualClock, project_id: str) -> None:
    """Create a user's project, a deleted one, transfers and permissions."""
    await api.request("POST", "/projects", {"project": {"name": "own"}})
    deleted = (await api.project(name="deleted"))["project"]["id"]
    moved = (await api.project(name="moved"))["project"]["id"]
    await project_key(api, moved)
    settings = {"quota": {"active_time_seconds": 3600}}
    body = {"project": {"settings": settings, "history_retention_seconds": 3600}}
    await api.request("PATCH", f"/projects/{project_id}", body)
    clock.advance(5)
    await api.request("DELETE", f"/projects/{deleted}")
    await api.move_to_new_organization(moved)
    heir = await api.new_user_key("heir@example.com")
    inherited = (await api.project(name="inherited"))["project"]["id"]
    for name in (inherited, project_id):
        path = f"/projects/{name}/transfer_requests"
        path = f"{path}/{(await api.request('POST', path, {'ttl_seconds': 900}))['id']}"
        if name == inherited:
            assert (await api.send("PUT", path, {}, key=heir)).status == 204
    path = f"/projects/{project_id}/permissions"
    for email in ("guest@example.com", "former@example.com"):
        granted = await api.request("POST", path, {"email": email})
    await api.request("DELETE", f"{path}/{granted['id']}")


async def _branches(api: Client, clock: ManualClock, project_id: str) -> None:
    """Create branches in all states, with roles, databases, computes and snapshots."""
    path = f"/projects/{project_id}"
    main = f"{path}/branches/{(await api.main_branch(project_id))['id']}"
    child = branch_path_of(await api.branch(project_id, name="child", compute=True))
    await api.branch(project_id, name="expiring", expires_at="2026-01-31T00:00:00Z")
    await api.branch(project_id, name="schema", init_source="schema-only")
    passing = branch_path_of(await api.branch(project_id, name="deleted", compute=True))
    clock.advance(9)
    await _objects(api, main)
    masked = {"branch": {"name": "masked"}, "endpoints": [{"type": "read_write"}]}
    body = {"branch_create": masked, "masking_rules": [RULE], "annotation_value": {"pr": "17"}}
    anonymized = await api.request("POST", f"{path}/branch_anonymized", body)
    clock.advance(9)
    await api.request("POST", f"{branch_path_of(anonymized)}/anonymize")
    allowed = {"allowed_ips": {"ips": ["192.0.2.1"]}}
    await api.request("PATCH", path, {"project": {"settings": allowed}})
    await api.request("DELETE", passing)
    kept = (await api.request("POST", f"{main}/snapshot?name=kept"))["snapshot"]["id"]
    await api.request("POST", f"{main}/snapshot?expires_at=2026-02-01T00:00:00Z")
    deleted = (await api.request("POST", f"{main}/snapshot?name=deleted"))["snapshot"]["id"]
    clock.advance(9)
    await api.request("DELETE", f"{path}/snapshots/{deleted}")
    await api.request("POST", f"{path}/snapshots/{kept}/restore", {"name": "restored"})
    body = {"source_branch_id": main.rpartition("/")[2], "preserve_under_name": "before"}
    await api.request("POST", f"{child}/restore", body)
    await api.request("PATCH", child, {"branch": {"protected": True}})
    schedule = {"schedule": [{"frequency": "daily", "hour": 3, "retention_seconds": 7 * DAY}]}
    await api.request("PUT", f"{main}/backup_schedule", schedule)
    replica = {"branch_id": main.rpartition("/")[2], "type": "read_only", "name": "replica"}
    await api.request("POST", f"{path}/endpoints", {"endpoint": replica})
    clock.advance(9)


async def _objects(api: Client, branch: str) -> None:
    """Create, change and delete roles and databases."""
    for name in ("alex", "former"):
        await api.request("POST", f"{branch}/roles", {"role": {"name": name}})
    await api.request("POST", f"{branch}/roles", {"role": {"name": "group", "no_login": True}})
    await api.request("DELETE", f"{branch}/roles/former")
    for name in ("orders", "dropped"):
        await api.add_database(branch, name)
    await api.request("PATCH", f"{branch}/databases/orders", {"database": {"name": "sales"}})
    await api.request("DELETE", f"{branch}/databases/dropped")


async def _access(api: Client, project_id: str) -> None:
    """Add URLs of public keys, and restrict the project to a VPC endpoint."""
    path = f"/projects/{project_id}"
    branch_id = (await api.main_branch(project_id))["id"]
    url = {"jwks_url": "https://auth.example.com/jwks.json", "provider_name": "Clerk"}
    await api.request("POST", f"{path}/jwks", url)
    more = {"branch_id": branch_id, "jwt_audience": "shop", "role_names": ["alex"]}
    await api.request("POST", f"{path}/jwks", url | more)
    vpc = f"{api.organization_path}/vpc/region/{REGION}/vpc_endpoints"
    for name in ("vpce-1", "vpce-2"):
        assert (await api.send("POST", f"{vpc}/{name}", {"label": name})).status == 200
    assert (await api.send("DELETE", f"{vpc}/vpce-2")).status == 200
    label = {"label": "shop"}
    assert (await api.send("POST", f"{path}/vpc_endpoints/vpce-1", label)).status == 200


async def _services(api: Client, project_id: str) -> None:
    """Enable Neon Auth and the Data API of a branch."""
    branch = f"/projects/{project_id}/branches/{(await api.main_branch(project_id))['id']}"
    provider = {"auth_provider": "better_auth"}
    await api.request("POST", f"{branch}/auth", provider)
    domain = provider | {"domain": "https://shop.example.com"}
    assert (await api.send("POST", f"{branch}/auth/domains", domain)).status == 201
    await api.request("POST", f"{branch}/auth/oauth_providers", {"id": "google"})
    await api.request("PATCH", f"{branch}/auth/allow_localhost", {"allow_localhost": False})
    await api.request("POST", f"{branch}/auth/users", {"email": "zoë@example.com", "name": "Zoë"})
    settings = {"settings": {"db_max_rows": 100}}
    await api.request("POST", f"{branch}/data-api/sales", settings)


async def _credentials(api: Client, project_id: str) -> None:
    """Set a role on the project, issue credentials, one of them revoked, and register a domain."""
    path = f"/projects/{project_id}"
    for member in (await api.get(f"{path}/members"))["project_members"]:
        role = {"role": "admin"}
        await api.request("PUT", f"{path}/members/{member['member_id']}/role", role)
    main = f"{path}/branches/{(await api.main_branch(project_id))['id']}"
    for name in ("uploads", "former"):
        body = {"name": name, "scopes": ["storage:read"], "principal_type": "user"}
        issued = await api.request("POST", f"{main}/credentials", body)
    assert (await api.send("DELETE", f"{main}/credentials/{issued['token_id']}")).status == 204
    domain = {"domain": "api.example.com", "entity_type": "function", "entity_id": "api"}
    await api.request("POST", f"{main}/custom-domains", domain)


async def _archived(api: Client, clock: ManualClock) -> None:
    """Let background work archive a branch, and detach a project."""
    old = (await api.project(name="old"))["project"]["id"]
    clock.advance(9)
    await api.branch(old, name="unused")
    clock.advance(16 * DAY)
    await api.get(f"/projects/{old}/branches")
    clock.advance(9 * DAY)


async def _operations(api: Client, clock: ManualClock) -> None:
    """Create operations in every status, and plan failures."""
    project_id = (await api.project(name="busy"))["project"]["id"]
    clock.advance(9)
    plane = api.control_plane
    for status in ("failed", "error", "cancelled", "skipped"):
        await plane.fail_next("create_branch", status=status, error=f"planned: {status}")
        await api.branch(project_id, name=status, compute=True)
    await plane.fail_next("create_branch", retry_after=600)
    await api.branch(project_id, name="again")
    await plane.fail_next("start_compute", times=3)
    await api.branch(project_id, name="partly", compute=True)
    clock.advance(9)
    await api.branch(project_id, name="running", compute=True)
    clock.advance(0.7)
    await api.branch(project_id, name="scheduling")
    found = {operation["status"] for operation in await api.operations(project_id)}
    expected = {"scheduling", "running", "finished", "failed", "error", "cancelled", "skipped"}
    assert found == expected, found


def make_real_world(data: Path) -> None:
    """Create records of real databases, with work that is done, fails, waits and runs."""
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane, name="real")
        snapshot = plane.request("POST", f"{project.main_path}/snapshot")["snapshot"]["id"]
        plane.work_off()
        path = f"{project.path}/snapshots/{snapshot}/restore"
        plane.request("POST", path, {"name": "restored"})
        plane.work_off()
        plane.run(operations.fail_next, "create_branch", Failure(error="planned"), 1)
        project.branch(name="failed", compute=True)
        plane.work_off()
        lost = project.branch(name="lost", compute=True)["branch"]["id"]
        plane.finish(*plane.ready(), error="no space left on device")
        plane.work_off()
        plane.request("DELETE", f"{project.path}/branches/{lost}")
        plane.work_off()
        project.branch(name="waiting", compute=True)
        plane.request("POST", f"{project.main_path}/snapshot", name="running")
        body = {"database": {"name": "sales", "owner_name": "neondb_owner"}}
        plane.request("POST", f"{project.main_path}/databases", body)
        statements: list[str] = []
        plane.run(lambda tx: statements.extend(tx._connection.iterdump()))  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - a dump needs the connection
    with closing(sqlite3.connect(data)) as file:
        file.executescript("\n".join(statements))
        file.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
        file.execute(f"PRAGMA user_version = {schema.newest()}")
        file.execute("PRAGMA journal_mode = WAL")


def load(world: str, path: Path) -> Path:
    """Create a data file with a world."""
    path.write_bytes(_world(world)[0])
    path.chmod(0o600)
    return path


def key_of(world: str) -> str:
    """Return the first API key of a world."""
    return _world(world)[1]


@cache
def _world(world: str) -> tuple[bytes, str]:
    """Return the content of a data file, and its first API key."""
    with tempfile.TemporaryDirectory() as directory:
        data = Path(directory, "data.db")
        key = ""
        if world == "real":
            make_real_world(data)
        else:
            key = asyncio.run(make_world(data))
        return data.read_bytes(), key
