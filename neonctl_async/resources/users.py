"""The account that a key belongs to."""

from neonctl_async.models.organizations import Organization, OrganizationsResponse
from neonctl_async.models.users import AuthDetails, CurrentUser
from neonctl_async.resources.base import Resource
from neonctl_async.transport.protocol import request


class Users(Resource):
    """Whose the key is."""

    async def me(self) -> CurrentUser:
        """The user whose key it is. Needs a personal key."""
        return await self._requester.send(request("GET", "/users/me", CurrentUser))

    async def organizations(self) -> list[Organization]:
        """The organizations of the user; of any other key, the one that owns it."""
        response = await self._requester.send(
            request("GET", "/users/me/organizations", OrganizationsResponse)
        )
        return response.organizations

    async def auth_details(self) -> AuthDetails:
        """Of which account and of which kind the key is."""
        return await self._requester.send(request("GET", "/auth", AuthDetails))
