"""Requests that manage the roles of a branch. Changes start an ``apply_config`` operation."""

from neonctl_local import ids
from neonctl_local.api.operations import operation_records
from neonctl_local.api.request import access, bodies
from neonctl_local.api.request.calls import Call, Json, Response, fields, respond
from neonctl_local.engine import branch_objects, computes, operations
from neonctl_local.errors import not_found, precondition_failed, unprocessable
from neonctl_local.storage.tables import Branch, Database, Project, Role
from neonctl_local.storage.transactions import Transaction


def create(tx: Transaction, call: Call) -> Response:
    """``POST .../branches/{branch_id}/roles``: return the password if the role can log in."""
    project, branch = access.branch(tx, call)
    spec = call.part("role", bodies.RoleSpec)
    branch_objects.check_new(tx, Role, branch.id, spec.name)
    chain = operations.start_chain(tx, project.id, branch.id)
    role = add(tx, branch.id, spec.name, no_login=spec.no_login)
    computes.configure_branch(tx, branch, chain)
    body = {"role": record(role, password=True), "operations": operation_records(chain)}
    return respond(body, 201)


def list_branch(tx: Transaction, call: Call) -> Response:
    """``GET .../branches/{branch_id}/roles``."""
    _, branch = access.branch(tx, call)
    found = branch_objects.of_branch(tx, Role, branch.id)
    return respond({"roles": [record(role) for role in found]})


def get(tx: Transaction, call: Call) -> Response:
    """``GET .../roles/{role_name}``."""
    _, _, role = _role(tx, call)
    return respond({"role": record(role)})


def delete(tx: Transaction, call: Call) -> Response:
    """``DELETE .../roles/{role_name}``: return 204 if already deleted.

    Raise 422 if the role owns a database.
    """
    project, branch = access.branch(tx, call)
    name = call.path["role_name"]
    if branch_objects.was_deleted(tx, Role, branch.id, name):
        return Response(204)
    role = branch_objects.get(tx, Role, branch.id, name)
    owned = "WHERE branch_id = ? AND owner_name = ? AND deleted_at IS NULL"
    database = tx.first(Database, owned, branch.id, name)
    if database is not None:
        raise unprocessable(
            f"role {name!r} owns the database {database.name!r}: change its owner first"
        )
    chain = operations.start_chain(tx, project.id, branch.id)
    role = tx.update(role, deleted_at=tx.now, updated_at=tx.now)
    computes.configure_branch(tx, branch, chain)
    return respond({"role": record(role), "operations": operation_records(chain)})


def reveal_password(tx: Transaction, call: Call) -> Response:
    """``GET .../roles/{role_name}/reveal_password``. Older clients send POST."""
    project, _, role = _role(tx, call)
    if role.no_login:
        raise not_found("password of role", role.name)
    if not project.store_passwords:
        raise precondition_failed("the project does not store passwords: reset it instead")
    return respond({"password": known_password(role)})


def reset_password(tx: Transaction, call: Call) -> Response:
    """``POST .../roles/{role_name}/reset_password``: return the new password."""
    project, branch, role = _role(tx, call)
    if role.no_login:
        raise unprocessable(f"role {role.name!r} cannot log in and has no password")
    chain = operations.start_chain(tx, project.id, branch.id)
    new = ids.password_seed()
    role = tx.update(role, password_seed=new, verifier=None, updated_at=tx.now)
    computes.configure_branch(tx, branch, chain)
    return respond({"role": record(role, password=True), "operations": operation_records(chain)})


def known_password(role: Role) -> str:
    """Return the password of a role. Raise 412 if it was set with SQL."""
    if role.password is None:
        raise precondition_failed(
            f"the password of role {role.name!r} was set with SQL, so only Postgres knows it: use "
            "that password, or call reset_password for a new one"
        )
    return role.password


def add(tx: Transaction, branch_id: str, name: str, *, no_login: bool = False) -> Role:
    """Store a role with a new password. Raise 422 if Postgres does not allow its name."""
    branch_objects.check_possible(Role, name)
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
    return tx.insert(role)


def record(role: Role, *, password: bool = False) -> Json:
    """Return a role as the API shows it. With ``password``, include its password."""
    shown = fields(role, "branch_id", "name", "protected", "created_at", "updated_at")
    shown["authentication_method"] = "no_login" if role.no_login else "password"
    if password and not role.no_login:
        shown["password"] = role.password
    return shown


def _role(tx: Transaction, call: Call) -> tuple[Project, Branch, Role]:
    project, branch = access.branch(tx, call)
    return project, branch, branch_objects.get(tx, Role, branch.id, call.path["role_name"])
