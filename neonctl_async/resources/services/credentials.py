"""Credentials of a branch: tokens for its services."""

import builtins
from collections.abc import Sequence
from typing import Literal

from msgspec import UNSET, UnsetType

from neonctl_async.models.base import Empty
from neonctl_async.models.services.credentials import (
    Credential,
    CredentialCreated,
    CredentialRotated,
    CredentialSecret,
    CredentialsResponse,
)
from neonctl_async.resources.base import Resource, as_list, drop_unset

_CREDENTIALS = "/projects/{project_id}/branches/{branch_id}/credentials"
_CREDENTIAL = f"{_CREDENTIALS}/{{token_id}}"


class Credentials(Resource):
    """Credentials of a branch: tokens for its storage, functions and AI gateway."""

    async def list(self, project_id: str, branch_id: str) -> builtins.list[Credential]:
        """Return the credentials of a branch, without their secrets.

        Beta: Neon may change this endpoint.
        """
        response = await self._send("GET", _CREDENTIALS, CredentialsResponse, project_id, branch_id)
        return response.credentials

    async def create(
        self,
        project_id: str,
        branch_id: str,
        *,
        scopes: Sequence[str],
        name: str | UnsetType = UNSET,
        principal_type: Literal["user"] = "user",
    ) -> CredentialCreated:
        """Create a credential for a branch.

        ``scopes`` are 1 to 16 values of :class:`CredentialScope`; ``name`` may be up to 256
        characters long. Neon only creates credentials with the ``principal_type`` ``user``. The
        result contains the secrets. Beta: Neon may change this endpoint.
        """
        body = drop_unset(
            scopes=as_list("scopes", scopes), name=name, principal_type=principal_type
        )
        return await self._send(
            "POST", _CREDENTIALS, CredentialCreated, project_id, branch_id, body=body
        )

    async def revoke(self, project_id: str, branch_id: str, token_id: str) -> None:
        """Revoke a credential. Repeating the call is safe. Beta: Neon may change this endpoint."""
        await self._send("DELETE", _CREDENTIAL, Empty, project_id, branch_id, token_id)

    async def reveal(self, project_id: str, branch_id: str, token_id: str) -> CredentialSecret:
        """Return the secrets of a credential.

        Raises ConflictError for an old credential whose secrets Neon does not store: call
        :meth:`rotate` instead. Raises NotFoundError for a revoked or expired credential. Beta: Neon
        may change this endpoint.
        """
        return await self._send(
            "POST", f"{_CREDENTIAL}/reveal", CredentialSecret, project_id, branch_id, token_id
        )

    async def rotate(self, project_id: str, branch_id: str, token_id: str) -> CredentialRotated:
        """Replace the secrets of a credential, and return the new ones. The id does not change.

        The old secrets stop working at once. In some regions, servers reject the new secrets for a
        short time: retry. If no response arrives, the secrets may have changed: create another
        credential, and revoke this one. Raises NotFoundError unless the credential is live and of
        the type ``user``. Beta: Neon may change this endpoint.
        """
        return await self._send(
            "POST", f"{_CREDENTIAL}/rotate", CredentialRotated, project_id, branch_id, token_id
        )
