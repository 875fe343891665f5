"""Postgres roles of a branch. Changing them is an apply_config (section 2.3)."""

from neonctl_async.local import ids
from neonctl_async.local.api.operations import operation_records
from neonctl_async.local.api.request import access, bodies
from neonctl_async.local.api.request.calls import Call, Json, Response, present, respond
from neonctl_async.local.clock import in_seconds
from neonctl_async.local.engine import branch_objects, computes, operations
from neonctl_async.local.errors import not_found, precondition_failed, unprocessable
from neonctl_async.local.storage.database import Transaction
from neonctl_async.local.storage.tables import Branch, Database, Project, Role


def create(tx: Transaction, call: Call) -> Response:
    """``POST .../branches/{branch_id}/roles``: with its password, unless it cannot log in."""
    project, branch = access.branch(tx, call)
    spec = call.body(bodies.RoleCreate).role
    branch_objects.refuse_taken(tx, Role, branch.id, spec.name)
    chain = operations.begin(tx, project.id, branch.id)
    add(tx, branch.id, spec.name, no_login=spec.no_login)
    computes.configure(tx, branch, chain)
    shown = record(branch_objects.get(tx, Role, branch.id, spec.name), password=True)
    return respond({"role": shown, "operations": operation_records(chain)}, 201)


def list_branch(tx: Transaction, call: Call) -> Response:
    """``GET .../branches/{branch_id}/roles``."""
    _, branch = access.branch(tx, call)
    return respond(
        {"roles": [record(role) for role in branch_objects.of_branch(tx, Role, branch.id)]}
    )


def get(tx: Transaction, call: Call) -> Response:
    """``GET .../roles/{role_name}``."""
    _, _, role = _role(tx, call)
    return respond({"role": record(role)})


def delete(tx: Transaction, call: Call) -> Response:
    """``DELETE .../roles/{role_name}``; 204 where it already was. An owner of databases stays."""
    project, branch = access.branch(tx, call)
    name = call.path["role_name"]
    if branch_objects.was_deleted(tx, Role, branch.id, name):
        return Response(204)
    role = branch_objects.get(tx, Role, branch.id, name)
    owned = "WHERE branch_id = ? AND owner_name = ? AND deleted_at IS NULL"
    database = tx.first(Database, owned, branch.id, name)
    if database is not None:
        raise unprocessable(f"role {name!r} owns the database {database.name!r}")
    chain = operations.begin(tx, project.id, branch.id)
    role = tx.update(role, deleted_at=tx.now, updated_at=tx.now)
    computes.configure(tx, branch, chain)
    return respond({"role": record(role), "operations": operation_records(chain)})


def reveal_password(tx: Transaction, call: Call) -> Response:
    """``GET .../roles/{role_name}/reveal_password``; older clients send POST."""
    project, _, role = _role(tx, call)
    if role.no_login:
        raise not_found("password of role", role.name)
    if not project.store_passwords:
        raise precondition_failed("the project does not store passwords: reset it instead")
    return respond({"password": role.password})


def reset_password(tx: Transaction, call: Call) -> Response:
    """``POST .../roles/{role_name}/reset_password``: answers the new one."""
    project, branch, role = _role(tx, call)
    if role.no_login:
        raise unprocessable(f"role {role.name!r} cannot log in and has no password")
    chain = operations.begin(tx, project.id, branch.id)
    role = tx.update(role, password_seed=ids.password_seed(), updated_at=tx.now)
    computes.configure(tx, branch, chain)
    return respond({"role": record(role, password=True), "operations": operation_records(chain)})


def add(tx: Transaction, branch_id: str, name: str, *, no_login: bool = False) -> None:
    """Store a role with a new password."""
    role = Role(
        id=0,
        branch_id=branch_id,
        name=name,
        password_seed=ids.password_seed(),
        no_login=no_login,
        protected=False,
        created_at=tx.now,
        updated_at=tx.now,
    )
    tx.insert(role)


def record(role: Role, *, password: bool = False) -> Json:
    """A role as the API shows it; its ``password`` where it was just made."""
    return present(
        {
            "branch_id": role.branch_id,
            "name": role.name,
            "password": role.password if password and not role.no_login else None,
            "protected": role.protected,
            "authentication_method": "no_login" if role.no_login else "password",
            "created_at": in_seconds(role.created_at),
            "updated_at": in_seconds(role.updated_at),
        }
    )


def _role(tx: Transaction, call: Call) -> tuple[Project, Branch, Role]:
    project, branch = access.branch(tx, call)
    return project, branch, branch_objects.get(tx, Role, branch.id, call.path["role_name"])
