"""Custom domains of a branch."""

from operator import attrgetter

from msgspec import UNSET, UnsetType

from neonctl_async.models.base import Empty
from neonctl_async.models.services.custom_domains import CustomDomain, CustomDomainsPage
from neonctl_async.pagination import Paginator
from neonctl_async.resources.base import Resource, check_within, drop_unset
from neonctl_async.transport.protocol import request

MAX_PAGE = 1000

_DOMAINS = "/projects/{project_id}/branches/{branch_id}/custom-domains"


class CustomDomains(Resource):
    """Custom domains of a branch. A custom domain points to a function."""

    def list(
        self, project_id: str, branch_id: str, *, limit: int | UnsetType = UNSET
    ) -> Paginator[CustomDomain]:
        """List the custom domains of a branch.

        ``limit`` is the page size, 1 to 1000. Beta: Neon may change this endpoint.
        """
        check_within("limit", limit, 1, MAX_PAGE)
        first = request(
            "GET", _DOMAINS, CustomDomainsPage, project_id, branch_id, query={"limit": limit}
        )
        return self._paginate(first, lambda page: page.custom_domains, attrgetter("domain"))

    async def register(
        self, project_id: str, branch_id: str, *, domain: str, entity_type: str, entity_id: str
    ) -> CustomDomain:
        """Register a domain that you own for a function. Repeating the call is safe.

        ``entity_type`` is ``function``, and ``entity_id`` is the slug of the function. After the
        call, create a CNAME record from the domain to the ``cname_target`` of the result. Neon
        obtains a certificate on the first request to the domain. Raises ConflictError if the
        domain is registered for another target. Beta: Neon may change this endpoint.
        """
        body = drop_unset(domain=domain, entity_type=entity_type, entity_id=entity_id)
        return await self._send("POST", _DOMAINS, CustomDomain, project_id, branch_id, body=body)

    async def delete(self, project_id: str, branch_id: str, domain: str) -> None:
        """Remove a domain from a branch. The case of the domain does not matter.

        Beta: Neon may change this endpoint.
        """
        await self._send("DELETE", f"{_DOMAINS}/{{domain}}", Empty, project_id, branch_id, domain)
