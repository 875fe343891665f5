"""Neon Auth of a branch: users, sign-in providers, domains and settings."""

from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from neonctl_async.models.base import Empty
from neonctl_async.models.secret import Secret, sent_secret
from neonctl_async.models.services.auth import (
    AuthIntegration,
    AuthKeys,
    AuthTransferResponse,
    AuthTrustedDomain,
    AuthTrustedDomainsResponse,
    AuthUser,
    OAuthProvider,
    OAuthProvidersResponse,
)
from neonctl_async.resources.base import as_list, drop_unset
from neonctl_async.resources.services.auth_settings import AUTH, AuthSettings

_DOMAINS = f"{AUTH}/domains"
_OAUTH_PROVIDERS = f"{AUTH}/oauth_providers"
_OAUTH_PROVIDER = f"{_OAUTH_PROVIDERS}/{{oauth_provider_id}}"
_USERS = f"{AUTH}/users"
_USER = f"{_USERS}/{{auth_user_id}}"


class Auth(AuthSettings):
    """Neon Auth of a branch: users, sign-in providers, domains and settings.

    ``auth_provider`` is an :class:`AuthProvider`, for new integrations ``"better_auth"``.
    """

    async def get(self, project_id: str, branch_id: str) -> AuthIntegration:
        """Return the integration. Raises NotFoundError if Neon Auth is not enabled.

        Beta: Neon may change this endpoint.
        """
        return await self._send("GET", AUTH, AuthIntegration, project_id, branch_id)

    async def enable(
        self,
        project_id: str,
        branch_id: str,
        *,
        auth_provider: str,
        database_name: str | UnsetType = UNSET,
    ) -> AuthKeys:
        """Enable Neon Auth for a branch.

        Neon creates the schema ``neon_auth``, which contains the users. By default, this is in the
        default database of the project.

        Beta: Neon may change this endpoint.
        """
        body = drop_unset(auth_provider=auth_provider, database_name=database_name)
        return await self._send("POST", AUTH, AuthKeys, project_id, branch_id, body=body)

    async def disable(
        self, project_id: str, branch_id: str, *, delete_data: bool | UnsetType = UNSET
    ) -> None:
        """Disable Neon Auth for a branch.

        With ``delete_data``, Neon also deletes the schema ``neon_auth`` with all users.

        Beta: Neon may change this endpoint.
        """
        body = drop_unset(delete_data=delete_data) or UNSET
        await self._send("DELETE", AUTH, Empty, project_id, branch_id, body=body)

    async def create_user(
        self, project_id: str, branch_id: str, *, email: str, name: str | UnsetType = UNSET
    ) -> AuthUser:
        """Create a user, who can sign in at once. ``name`` is the displayed name.

        Beta: Neon may change this endpoint.
        """
        body = drop_unset(email=email, name=name)
        return await self._send("POST", _USERS, AuthUser, project_id, branch_id, body=body)

    async def update_user_roles(
        self, project_id: str, branch_id: str, auth_user_id: str, *, roles: Sequence[str]
    ) -> AuthUser:
        """Replace the roles of a user: ``user``, ``admin``, or roles of your own."""
        body = drop_unset(roles=as_list("roles", roles))
        return await self._send(
            "PUT", f"{_USER}/role", AuthUser, project_id, branch_id, auth_user_id, body=body
        )

    async def delete_user(self, project_id: str, branch_id: str, auth_user_id: str) -> None:
        """Delete a user permanently.

        Beta: Neon may change this endpoint.
        """
        await self._send("DELETE", _USER, Empty, project_id, branch_id, auth_user_id)

    async def list_oauth_providers(self, project_id: str, branch_id: str) -> list[OAuthProvider]:
        """Return the OAuth providers that users can sign in with.

        Beta: Neon may change this endpoint.
        """
        response = await self._send(
            "GET", _OAUTH_PROVIDERS, OAuthProvidersResponse, project_id, branch_id
        )
        return response.providers

    async def add_oauth_provider(
        self,
        project_id: str,
        branch_id: str,
        *,
        id: str,
        client_id: str | UnsetType = UNSET,
        client_secret: str | Secret | UnsetType = UNSET,
        microsoft_tenant_id: str | UnsetType = UNSET,
    ) -> OAuthProvider:
        """Add an OAuth provider. ``id`` is an :class:`OAuthProviderId`.

        Without ``client_id`` and ``client_secret``, users sign in with the application of Neon,
        which exists for ``google`` and ``github``.

        Only ``microsoft`` has a ``microsoft_tenant_id``.

        Beta: Neon may change this endpoint.
        """
        client_secret = sent_secret(client_secret)
        body = drop_unset(
            id=id,
            client_id=client_id,
            client_secret=client_secret,
            microsoft_tenant_id=microsoft_tenant_id,
        )
        return await self._send(
            "POST", _OAUTH_PROVIDERS, OAuthProvider, project_id, branch_id, body=body
        )

    async def update_oauth_provider(
        self,
        project_id: str,
        branch_id: str,
        oauth_provider_id: str,
        *,
        client_id: str | UnsetType = UNSET,
        client_secret: str | Secret | UnsetType = UNSET,
        microsoft_tenant_id: str | UnsetType = UNSET,
    ) -> OAuthProvider:
        """Change the OAuth application of a provider. Omitted settings keep their values.

        Beta: Neon may change this endpoint.
        """
        client_secret = sent_secret(client_secret)
        body = drop_unset(
            client_id=client_id,
            client_secret=client_secret,
            microsoft_tenant_id=microsoft_tenant_id,
        )
        return await self._send(
            "PATCH",
            _OAUTH_PROVIDER,
            OAuthProvider,
            project_id,
            branch_id,
            oauth_provider_id,
            body=body,
        )

    async def delete_oauth_provider(
        self, project_id: str, branch_id: str, oauth_provider_id: str
    ) -> None:
        """Delete an OAuth provider. Users can no longer sign in with it.

        Beta: Neon may change this endpoint.
        """
        await self._send("DELETE", _OAUTH_PROVIDER, Empty, project_id, branch_id, oauth_provider_id)

    async def list_trusted_domains(
        self, project_id: str, branch_id: str
    ) -> list[AuthTrustedDomain]:
        """Return the domains that may be the target of a redirect after the sign-in.

        Beta: Neon may change this endpoint.
        """
        response = await self._send(
            "GET", _DOMAINS, AuthTrustedDomainsResponse, project_id, branch_id
        )
        return response.domains

    async def add_trusted_domain(
        self, project_id: str, branch_id: str, *, domain: str, auth_provider: str
    ) -> None:
        """Trust a domain, a URL such as ``https://app.example.com``.

        Beta: Neon may change this endpoint.
        """
        body = drop_unset(domain=domain, auth_provider=auth_provider)
        await self._send("POST", _DOMAINS, Empty, project_id, branch_id, body=body)

    async def delete_trusted_domains(
        self, project_id: str, branch_id: str, *, domains: Sequence[str], auth_provider: str
    ) -> None:
        """Stop trusting domains.

        Beta: Neon may change this endpoint.
        """
        items = [{"domain": domain} for domain in as_list("domains", domains)]
        body = drop_unset(domains=items, auth_provider=auth_provider)
        await self._send("DELETE", _DOMAINS, Empty, project_id, branch_id, body=body)

    async def create_keys(self, *, project_id: str, auth_provider: str) -> AuthKeys:
        """Create keys for the SDKs of the auth provider of a project."""
        body = drop_unset(project_id=project_id, auth_provider=auth_provider)
        return await self._send("POST", "/projects/auth/keys", AuthKeys, body=body)

    async def transfer_ownership(self, *, project_id: str, auth_provider: str) -> Secret:
        """Start to transfer the project at the auth provider to your own account there.

        Open the URL in the result to finish the transfer. Anyone who knows the URL can do so.
        """
        body = drop_unset(project_id=project_id, auth_provider=auth_provider)
        response = await self._send(
            "POST", "/projects/auth/transfer_ownership", AuthTransferResponse, body=body
        )
        return response.url
