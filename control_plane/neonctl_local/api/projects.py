"""Requests that create, read and list projects."""

from datetime import UTC, datetime
from typing import Final

from msgspec import UNSET

from neonctl_local import ids
from neonctl_local.api import branches, databases, endpoints, project_settings, regions, roles
from neonctl_local.api.request import access, bodies
from neonctl_local.api.request.calls import (
    Call,
    Json,
    Response,
    drop_none,
    json_text,
    respond,
)
from neonctl_local.clock import SECOND, in_seconds, in_seconds_or_none, instant, span
from neonctl_local.engine import computes, operations
from neonctl_local.engine.api_keys import Principal
from neonctl_local.engine.branches import RECOVERY_SECONDS, insert_branch
from neonctl_local.engine.operations import OperationChain
from neonctl_local.engine.work import CreateCluster
from neonctl_local.errors import invalid
from neonctl_local.storage.rows import SqlValue
from neonctl_local.storage.tables import Branch, Project, User
from neonctl_local.storage.transactions import Transaction

DEFAULT_PG_VERSION: Final = 18
DEFAULT_LIMIT: Final = 10
LOGICAL_SIZE_LIMIT_MIB: Final = 3072


def list_page(tx: Transaction, call: Call) -> Response:
    """``GET /projects``: list the projects that the key can access, newest first."""
    visible, values = _visible_projects(call.principal)
    org_id = call.query.get("org_id")
    if not call.principal.watches:  # the console lists the projects of all organizations
        access.check_owner_named(tx, call.principal, org_id)
    if org_id:
        access.check_organization_visible(tx, call.principal, org_id)
        visible, values = f"({visible}) AND org_id = ?", [*values, org_id]
    wanted = "deleted_at IS NULL"
    if call.flag("recoverable"):
        wanted, values = "deleted_at >= ?", [*values, tx.now - span(RECOVERY_SECONDS)]
    body = _page(tx, call, f"({visible}) AND {wanted}", *values)
    body["applications"], body["integrations"] = {}, {}
    return respond(body)


def list_shared(tx: Transaction, call: Call) -> Response:
    """``GET /projects/shared``: list the projects shared with the user, newest first."""
    shared = f"id IN (SELECT project_id FROM permissions WHERE {access.GRANTED})"
    return respond(_page(tx, call, f"{shared} AND deleted_at IS NULL", call.principal.user_id))


def create(tx: Transaction, call: Call) -> Response:
    """``POST /projects``: create a project.

    This starts a ``create_timeline`` operation, then a ``start_compute`` operation.
    """
    spec = call.part("project", bodies.ProjectSpec)
    regions.check_known(spec.region_id, "project.region_id")
    project_settings.check(tx, spec.settings, _pg_version(tx, spec))
    defaults = spec.default_endpoint_settings
    project_settings.check_computes(defaults, "project.default_endpoint_settings")
    user_id, org_id = access.new_owner(tx, call.principal, spec.org_id)
    project = _insert(tx, spec, user_id, org_id)
    project_settings.check_default_sizes(project)
    chain = operations.start_chain(tx, project.id)
    branch = _add_first_branch(tx, project, spec.branch, call.principal, chain)
    endpoint_spec = bodies.EndpointSpec(
        type="read_write",
        autoscaling_limit_min_cu=spec.autoscaling_limit_min_cu,
        autoscaling_limit_max_cu=spec.autoscaling_limit_max_cu,
    )
    endpoint = endpoints.add(tx, project, branch, endpoint_spec, chain)
    body = branches.created_body(tx, branch, [endpoint], chain, passwords=True)
    return respond({"project": record(tx, project, call.principal)} | body, 201)


def get(tx: Transaction, call: Call) -> Response:
    """``GET /projects/{project_id}``."""
    return respond({"project": record(tx, access.project(tx, call), call.principal)})


def list_record(tx: Transaction, project: Project) -> Json:
    """Return a project as lists show it."""
    return drop_none(
        {
            "id": project.id,
            "name": project.name,
            "platform_id": project.region_id.partition("-")[0],
            "region_id": project.region_id,
            "provisioner": project.provisioner,
            "pg_version": project.pg_version,
            "locked": False,
            "cpu_used_sec": 0,
            "proxy_host": computes.proxy_host(tx, project.region_id),
            "branch_logical_size_limit": LOGICAL_SIZE_LIMIT_MIB,
            "branch_logical_size_limit_bytes": LOGICAL_SIZE_LIMIT_MIB << 20,
            "active_time": 0,
            "store_passwords": project.store_passwords,
            "creation_source": "console",
            "history_retention_seconds": project.history_retention_seconds,
            **project_settings.shown(project),
            "synthetic_storage_size": 0,
            "owner_id": project.org_id or project.user_id,
            "org_id": project.org_id,
            "created_at": in_seconds(project.created_at),
            "updated_at": in_seconds(project.updated_at),
            "compute_last_active_at": _last_active(tx, project),
        }
    ) | _recovery(project)


def record(tx: Transaction, project: Project, principal: Principal) -> Json:
    """Return a project as ``GET /projects/{project_id}`` shows it to the key's owner."""
    start = datetime.fromtimestamp(tx.now // SECOND, UTC).replace(day=1, hour=0, minute=0, second=0)
    end = start.replace(year=start.year + start.month // 12, month=start.month % 12 + 1)
    owner = tx.first(User, "WHERE id = ?", project.user_id)
    owner_record = owner and {
        "email": owner.email,
        "name": owner.name,
        "branches_limit": 500,
        "subscription_type": "launch",
    }
    return list_record(tx, project) | drop_none(
        {
            "data_storage_bytes_hour": 0,
            "data_transfer_bytes": 0,
            "written_data_bytes": 0,
            "compute_time_seconds": 0,
            "active_time_seconds": 0,
            "consumption_period_start": in_seconds(instant(start)),
            "consumption_period_end": in_seconds(instant(end)),
            "owner": owner_record,
            "effective_project_permission": _permission(tx, principal, project),
        }
    )


def _page(tx: Transaction, call: Call, where: str, *values: SqlValue) -> Json:
    limit = call.integer("limit", DEFAULT_LIMIT)
    search = call.query.get("search", "")
    page = tx.select(
        Project,
        f"WHERE {where} AND (instr(name, ?) OR instr(id, ?)) "
        "AND created_at < ? ORDER BY created_at DESC LIMIT ?",
        *values,
        search,
        search,
        access.project_position(tx, call),
        limit,
    )
    body: Json = {
        "projects": [list_record(tx, project) for project in page],
        "unavailable_project_ids": [],
    }
    if page:
        body["pagination"] = {"cursor": page[-1].id}
    return body


def _insert(
    tx: Transaction, spec: bodies.ProjectSpec, user_id: str | None, org_id: str | None
) -> Project:
    project_id = ids.object_id()
    newest = tx.number("SELECT max(created_at) FROM projects") or 0
    after = tx.rules.intervals.detach_after
    project = Project(
        id=project_id,
        name=spec.name or project_id,
        user_id=user_id,
        org_id=org_id,
        region_id=spec.region_id,
        provisioner=spec.provisioner,
        pg_version=_pg_version(tx, spec),
        store_passwords=spec.store_passwords,
        history_retention_seconds=spec.history_retention_seconds,
        settings=json_text(spec.settings),
        default_endpoint_settings=json_text(spec.default_endpoint_settings),
        # Unique, because a cursor must name one position in the list.
        created_at=max(tx.now, newest + 1),
        updated_at=tx.now,
        detach_at=None if after is None else tx.now + span(after),
    )
    return tx.insert(project)


def _pg_version(tx: Transaction, spec: bodies.ProjectSpec) -> int:
    """Return the Postgres version of a new project.

    With real databases, the default is the newest installed version.
    """
    rules = tx.rules.postgres
    if rules is None:
        return DEFAULT_PG_VERSION if spec.pg_version is UNSET else spec.pg_version
    if spec.pg_version is UNSET:
        return rules.versions[0]
    if spec.pg_version not in rules.versions:
        raise invalid(
            f"invalid request: project.pg_version: Postgres {spec.pg_version} is not installed on "
            f"this machine: use {' or '.join(map(str, rules.versions))}"
        )
    return spec.pg_version


def _add_first_branch(
    tx: Transaction,
    project: Project,
    spec: bodies.FirstBranch,
    principal: Principal,
    chain: OperationChain,
) -> Branch:
    branch_id = ids.object_id("br-")
    creation = chain.add(
        "create_timeline",
        branch_id=branch_id,
        new_name=spec.name,
        work=CreateCluster(branch_id, project.pg_version),
    )
    branch = Branch(
        id=branch_id,
        project_id=project.id,
        name=spec.name,
        is_default=True,
        annotation=json_text(spec.annotations),
        created_by=principal.created_by,
        created_at=tx.now,
        updated_at=tx.now,
        state_at=creation.settles_at,
    )
    branch = insert_branch(tx, branch, creation)
    roles.add(tx, branch.id, spec.owner_name)
    databases.add(tx, branch.id, spec.database_name, spec.owner_name)
    return branch


def _visible_projects(principal: Principal) -> tuple[str, list[SqlValue]]:
    if principal.kind == "project":
        return "id = ?", [principal.project_id]
    if principal.kind == "organization":
        return "org_id = ?", [principal.org_id]
    mine = "user_id = ? OR org_id IN (SELECT org_id FROM members WHERE user_id = ?)"
    return mine, [principal.user_id, principal.user_id]


def branch_ids(tx: Transaction, project_id: str) -> list[str]:
    """Return the ids of a project's branches."""
    where = "WHERE project_id = ? AND deleted_at IS NULL"
    return [branch.id for branch in tx.select(Branch, where, project_id)]


def _recovery(project: Project) -> Json:
    if project.deleted_at is None:
        return {}
    return {
        "deleted_at": in_seconds(project.deleted_at),
        "recoverable_until": in_seconds(project.deleted_at + span(RECOVERY_SECONDS)),
    }


def _permission(tx: Transaction, principal: Principal, project: Project) -> str | None:
    """Return a user's permission on an organization's project, or None in other cases."""
    if principal.user_id is None or project.org_id is None:
        return None
    is_admin = access.project_level(tx, principal, project) is access.Level.ADMIN
    return "ADMIN" if is_admin else "EDITOR"


def _last_active(tx: Transaction, project: Project) -> str | None:
    sql = (
        "SELECT max(max(started_at, ifnull(used_at, 0))) FROM endpoints "
        "WHERE project_id = ? AND started_at <= ?"
    )
    return in_seconds_or_none(tx.number(sql, project.id, tx.now))
