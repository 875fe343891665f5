"""The account that an API key belongs to."""

from neonctl_async.models.organizations import Organization, OrganizationsResponse
from neonctl_async.models.users import AuthDetails, CurrentUser
from neonctl_async.resources.base import Resource


class Users(Resource):
    """The account that the API key belongs to."""

    async def me(self) -> CurrentUser:
        """Return the user. Requires a personal API key."""
        return await self._send("GET", "/users/me", CurrentUser)

    async def organizations(self) -> list[Organization]:
        """Return the organizations of the user, or the organization that owns the API key."""
        response = await self._send("GET", "/users/me/organizations", OrganizationsResponse)
        return response.organizations

    async def auth_details(self) -> AuthDetails:
        """Return the account and the kind of the API key."""
        return await self._send("GET", "/auth", AuthDetails)
