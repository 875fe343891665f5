"""Requests that manage the users of Neon Auth on a branch. The API cannot list them."""

from neonctl_local import ids
from neonctl_local.api.request.bodies import Body, Email
from neonctl_local.api.request.calls import Call, Response, json_text, respond
from neonctl_local.api.services import auth
from neonctl_local.errors import conflict, not_found
from neonctl_local.storage.service_tables import AuthUser
from neonctl_local.storage.transactions import Transaction


class AuthUserCreate(Body, frozen=True):
    """A user to create."""

    email: Email
    name: str | None = None


class AuthUserRoles(Body, frozen=True):
    """The new roles of a user. Any string can be a role."""

    roles: list[str]


def create(tx: Transaction, call: Call) -> Response:
    """``POST .../auth/users``: return 409 if the branch has a user with this email address."""
    branch_id = auth.changeable(tx, call).id
    body = call.body(AuthUserCreate)
    if tx.first(AuthUser, "WHERE branch_id = ? AND email = ?", branch_id, body.email) is not None:
        raise conflict(f"a user with the email address {body.email!r} already exists in the branch")
    user = AuthUser(
        id=0,
        branch_id=branch_id,
        user_id=ids.uuid_text(),
        email=body.email,
        name=body.name,
        created_at=tx.now,
    )
    return respond({"id": tx.insert(user).user_id}, 201)


def set_roles(tx: Transaction, call: Call) -> Response:
    """``PUT .../auth/users/{auth_user_id}/role``: replace all roles of a user."""
    user = _find(tx, call)
    tx.update(user, roles=json_text(call.body(AuthUserRoles).roles))
    return respond({"id": user.user_id})


def delete(tx: Transaction, call: Call) -> Response:
    """``DELETE .../auth/users/{auth_user_id}``."""
    tx.execute("DELETE FROM auth_users WHERE id = ?", _find(tx, call).id)
    return Response(204)


def _find(tx: Transaction, call: Call) -> AuthUser:
    branch_id = auth.changeable(tx, call).id
    user_id = call.path["auth_user_id"]
    user = tx.first(AuthUser, "WHERE branch_id = ? AND user_id = ?", branch_id, user_id)
    if user is None:
        raise not_found("user", user_id)
    return user
