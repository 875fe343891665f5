"""Requests that enable, read and disable Neon Auth on a branch. Nobody can sign in here.

Users, providers and domains are stored only so that scripts that prepare a branch work. Passwords
and client secrets are not stored.
"""

import secrets
from typing import Final

from neonctl_local import ids
from neonctl_local.api.request import access
from neonctl_local.api.request.bodies import Body, Name
from neonctl_local.api.request.calls import Call, Json, Response, respond
from neonctl_local.api.services import hosts
from neonctl_local.clock import in_seconds
from neonctl_local.engine import branch_objects, restores
from neonctl_local.engine.services import auth
from neonctl_local.errors import ApiError, conflict, invalid
from neonctl_local.storage.service_tables import AuthIntegration
from neonctl_local.storage.tables import Branch, Database, Project
from neonctl_local.storage.transactions import Transaction

STACK: Final = "stack"
"""The only provider with keys of its own. It is deprecated."""


class AuthCreate(Body, frozen=True):
    """The body that enables Neon Auth, by default in the oldest database of the branch."""

    auth_provider: str
    database_name: str | None = None


class AuthDisable(Body, frozen=True):
    """The body that disables Neon Auth."""

    delete_data: bool = False


class AuthConfig(Body, frozen=True):
    """The name of the application in emails from Neon Auth."""

    name: Name


def enabled(tx: Transaction, call: Call) -> AuthIntegration:
    """Return the Neon Auth integration of the branch in the path. Raise 404 if none is enabled."""
    _, branch = access.branch(tx, call)
    return _enabled_on(tx, branch)


def changeable(tx: Transaction, call: Call) -> AuthIntegration:
    """Return what :func:`enabled` returns. Raise 423 while the branch is being restored."""
    integration = enabled(tx, call)
    restores.check_not_restoring(tx, integration.id)
    return integration


def enable(tx: Transaction, call: Call) -> Response:
    """``POST .../branches/{branch_id}/auth``: enable Neon Auth, or return 409 if it is enabled.

    Data from earlier use is kept if the database is the same.
    """
    _, branch = access.branch(tx, call)
    restores.check_not_restoring(tx, branch.id)
    body = call.body(AuthCreate)
    existing = auth.find(tx, branch.id)
    if existing is not None and existing.enabled:
        raise conflict(f"Neon Auth is already enabled on branch {branch.id!r}")
    database_name = _database_name(tx, branch, body.database_name)
    if existing is not None and existing.database_name == database_name:
        integration = tx.update(existing, enabled=True, provider=body.auth_provider)
    else:
        integration = AuthIntegration(
            id=branch.id,
            provider=body.auth_provider,
            provider_project_id=ids.uuid_text(),
            database_name=database_name,
            created_at=tx.now,
        )
        auth.replace_content(tx, branch.id, auth.AuthContent(integration))
    return respond(_created(tx, branch, integration), 201)


def get(tx: Transaction, call: Call) -> Response:
    """``GET .../branches/{branch_id}/auth``."""
    project, branch = access.branch(tx, call)
    return respond(_record(tx, project, branch, _enabled_on(tx, branch)))


def disable(tx: Transaction, call: Call) -> Response:
    """``DELETE .../branches/{branch_id}/auth``: keep the data, unless ``delete_data`` is true."""
    integration = changeable(tx, call)
    if call.body(AuthDisable).delete_data:
        auth.delete_content(tx, integration.id)
    else:
        tx.update(integration, enabled=False)
    return Response(200)


def update_config(tx: Transaction, call: Call) -> Response:
    """``PATCH .../auth/config``: change the name of the application."""
    integration = changeable(tx, call)
    name = call.body(AuthConfig).name
    tx.update(integration, name=name)
    return respond({"name": name})


def _enabled_on(tx: Transaction, branch: Branch) -> AuthIntegration:
    integration = auth.find(tx, branch.id)
    if integration is None or not integration.enabled:
        raise ApiError(
            404, f"Neon Auth is not enabled on branch {branch.id!r}: enable it with a POST first"
        )
    return integration


def _database_name(tx: Transaction, branch: Branch, name: str | None) -> str:
    if name is not None:
        return branch_objects.get(tx, Database, branch.id, name).name
    databases = branch_objects.of_branch(tx, Database, branch.id)
    if not databases:
        raise invalid(
            f"invalid request: database_name: branch {branch.id!r} has no database: create one"
        )
    return databases[0].name


def _urls(tx: Transaction, branch: Branch, integration: AuthIntegration) -> Json:
    base_url = hosts.url(tx, branch, "neonauth", integration.database_name) + "/auth"
    return {"jwks_url": f"{base_url}/.well-known/jwks.json", "base_url": base_url}


def _created(tx: Transaction, branch: Branch, integration: AuthIntegration) -> Json:
    has_keys = integration.provider == STACK
    return {
        "auth_provider": integration.provider,
        "auth_provider_project_id": integration.provider_project_id,
        "pub_client_key": f"pck_{secrets.token_hex(16)}" if has_keys else "",
        "secret_server_key": f"ssk_{secrets.token_hex(16)}" if has_keys else "",
        "schema_name": "neon_auth",
        "table_name": "users_sync",
        **_urls(tx, branch, integration),
    }


def _record(
    tx: Transaction, project: Project, branch: Branch, integration: AuthIntegration
) -> Json:
    return {
        "auth_provider": integration.provider,
        "auth_provider_project_id": integration.provider_project_id,
        "branch_id": branch.id,
        "db_name": integration.database_name,
        "created_at": in_seconds(integration.created_at),
        "owned_by": "neon",
        "name": project.name if integration.name is None else integration.name,
        **_urls(tx, branch, integration),
    }
