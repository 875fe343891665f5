"""Credentials, which let an application use the services of a branch without an API key.

The local control plane issues credentials, but has no services that check them, so their last use
is never known.
"""

from typing import Annotated, Final, Literal

from msgspec import Meta

from neonctl_local import ids
from neonctl_local.api.request import access
from neonctl_local.api.request.bodies import Body, Name
from neonctl_local.api.request.calls import (
    Call,
    Json,
    Response,
    fields,
    json_text,
    raw_json,
    respond,
)
from neonctl_local.errors import ApiError, not_found
from neonctl_local.storage.access_tables import Credential
from neonctl_local.storage.transactions import Transaction

CredentialScope = Literal["storage:read", "storage:write", "ai_gateway:invoke", "functions:invoke"]


class CredentialCreate(Body, frozen=True):
    """A credential to create."""

    scopes: Annotated[list[CredentialScope], Meta(min_length=1, max_length=16)]
    principal_type: Literal["user"]
    name: Name | None = None


_OF_USER: Final[Json] = {"principal_type": "user"}
"""The type of every credential. Neon issues the other types to its own services."""

_IN_PROJECT: Final = (
    "WHERE id = ? AND branch_id IN "
    "(SELECT id FROM branches WHERE project_id = ? AND deleted_at IS NULL)"
)


def list_branch(tx: Transaction, call: Call) -> Response:
    """``GET .../branches/{branch_id}/credentials``: oldest first, including revoked ones."""
    _, branch = access.branch(tx, call)
    where = "WHERE branch_id = ? ORDER BY created_at, rowid"
    found = tx.select(Credential, where, branch.id)
    shown = [_record(credential) | fields(credential, "revoked_at") for credential in found]
    return respond({"credentials": [_OF_USER | credential for credential in shown]})


def create(tx: Transaction, call: Call) -> Response:
    """``POST .../branches/{branch_id}/credentials``: the response contains the secrets."""
    _, branch = access.branch(tx, call)
    body = call.body(CredentialCreate)
    credential = Credential(
        id=ids.credential_id(),
        branch_id=branch.id,
        name=body.name,
        scopes=json_text(list(dict.fromkeys(body.scopes))),
        secret_seed=ids.password_seed(),
        created_at=tx.now,
    )
    return respond(_record(tx.insert(credential)) | _secrets(credential), 201)


def revoke(tx: Transaction, call: Call) -> Response:
    """``DELETE .../credentials/{token_id}``: revoking a credential again changes nothing."""
    _, branch = access.branch(tx, call)
    token_id = call.path["token_id"]
    credential = tx.first(Credential, "WHERE id = ? AND branch_id = ?", token_id, branch.id)
    if credential is None:
        raise _missing(token_id)
    if credential.revoked_at is None:
        tx.update(credential, revoked_at=tx.now)
    return Response(204)


def reveal(tx: Transaction, call: Call) -> Response:
    """``POST .../credentials/{token_id}/reveal``: return the secrets.

    As in the published description, the credential can belong to any branch of the project.
    """
    project, _ = access.branch(tx, call)
    token_id = call.path["token_id"]
    where = f"{_IN_PROJECT} AND revoked_at IS NULL"
    credential = tx.first(Credential, where, token_id, project.id)
    if credential is None:
        raise _missing(token_id)
    return respond({"token_id": credential.id} | _secrets(credential))


def rotate(tx: Transaction, call: Call) -> Response:
    """``POST .../credentials/{token_id}/rotate``: replace both secrets, and keep the id."""
    _, branch = access.branch(tx, call)
    token_id = call.path["token_id"]
    where = "WHERE id = ? AND branch_id = ? AND revoked_at IS NULL"
    credential = tx.first(Credential, where, token_id, branch.id)
    if credential is None:
        raise _missing(token_id)
    rotated = tx.update(credential, secret_seed=ids.password_seed())
    return respond(_record(rotated) | _OF_USER | _secrets(rotated))


def _record(credential: Credential) -> Json:
    return {
        "token_id": credential.id,
        "token_id_short": credential.short_id,
        **fields(credential, "name", "branch_id", "created_at"),
        "scopes": raw_json(credential.scopes),
    }


def _secrets(credential: Credential) -> Json:
    return {
        "api_token": credential.api_token,
        "s3_secret_access_key": credential.s3_secret_access_key,
    }


def _missing(token_id: str) -> ApiError:
    return not_found("credential", token_id)
