"""The Data API: HTTP access to a database of a branch."""

from typing import Literal

from msgspec import UNSET, UnsetType

from neonctl_async.models.base import Empty
from neonctl_async.models.services.data_api import BranchDataApi, DataApiCreated, DataApiSettings
from neonctl_async.resources.base import Resource, drop_unset

_DATA_API = "/projects/{project_id}/branches/{branch_id}/data-api/{database_name}"


class DataApi(Resource):
    """The Data API: HTTP access to a database of a branch."""

    async def get(self, project_id: str, branch_id: str, database_name: str) -> BranchDataApi:
        """Return the Data API of a database: its URL, status and settings."""
        return await self._send(
            "GET", _DATA_API, BranchDataApi, project_id, branch_id, database_name
        )

    async def create(
        self,
        project_id: str,
        branch_id: str,
        database_name: str,
        *,
        auth_provider: Literal["neon_auth", "external"] | UnsetType = UNSET,
        jwks_url: str | UnsetType = UNSET,
        provider_name: str | UnsetType = UNSET,
        jwt_audience: str | UnsetType = UNSET,
        add_default_grants: bool | UnsetType = UNSET,
        skip_auth_schema: bool | UnsetType = UNSET,
        settings: DataApiSettings | UnsetType = UNSET,
    ) -> DataApiCreated:
        """Create the Data API of a database.

        ``auth_provider`` verifies the tokens of requests: ``neon_auth`` is Neon Auth, ``external``
        is the provider called ``provider_name`` with the keys at ``jwks_url``. Without
        ``auth_provider``, the current provider is kept. With ``jwt_audience``, tokens for another
        audience are rejected; tokens without an audience are accepted.

        ``add_default_grants`` grants authenticated users all permissions on the tables of the
        ``public`` schema. ``skip_auth_schema`` omits the ``auth`` schema and the functions for
        row-level security.
        """
        body = drop_unset(
            auth_provider=auth_provider,
            jwks_url=jwks_url,
            provider_name=provider_name,
            jwt_audience=jwt_audience,
            add_default_grants=add_default_grants,
            skip_auth_schema=skip_auth_schema,
            settings=settings,
        )
        return await self._send(
            "POST",
            _DATA_API,
            DataApiCreated,
            project_id,
            branch_id,
            database_name,
            body=body or UNSET,
        )

    async def update(
        self,
        project_id: str,
        branch_id: str,
        database_name: str,
        *,
        settings: DataApiSettings | UnsetType = UNSET,
    ) -> None:
        """Change the settings of a Data API, and refresh its cache of the database schema.

        Without ``settings``, the call only refreshes the cache. Call it after a migration.
        """
        body = drop_unset(settings=settings) or UNSET
        await self._send("PATCH", _DATA_API, Empty, project_id, branch_id, database_name, body=body)

    async def delete(self, project_id: str, branch_id: str, database_name: str) -> None:
        """Delete the Data API of a database. Requests to its URL fail from then on."""
        await self._send("DELETE", _DATA_API, Empty, project_id, branch_id, database_name)
