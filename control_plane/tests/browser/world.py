"""A local control plane with difficult names, and the pages that show it."""

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple
from urllib.parse import quote

from neonctl_async import EndpointSpec, NeonClient, NotFoundError
from neonctl_async.types import InvitationSpec
from neonctl_local import Durations, Fault, LocalControlPlane
from neonctl_local.console.routes import PAGES

MARKUP = "<script>alert(1)</script><img src=x onerror=alert(2)>'\"&amp;"
RIGHT_TO_LEFT = "before \u202eafter\u2066 עברית"
LONG = "W" * 256
VERY_LONG = "long " * 2000
"""A name of 10,000 characters. Names of branches have at most 256, those of projects 64."""

BRANCH = "/projects/{project_id}/branches/{branch_id}"
QUERIES: Mapping[str, str] = {
    f"{BRANCH}/databases/delete": "?name={database}",
    f"{BRANCH}/roles/delete": "?name={role}",
    f"{BRANCH}/roles/password": "?name={role}",
    f"{BRANCH}/roles/reset": "?name={role}",
}
"""The query of each page that needs one. It may contain parameters, as a path does."""


class World(NamedTuple):
    """A local control plane, and the value of each parameter of a path."""

    control_plane: LocalControlPlane
    ids: Mapping[str, str]

    @property
    def origin(self) -> str:
        """The origin of the console."""
        return self.control_plane.base_url.removesuffix("/api/v2")

    def url(self, path: str) -> str:
        """Return the path of a page with values for its parameters."""
        template = path + QUERIES.get(path, "")
        if path.startswith("/organizations/"):
            template = template.replace("{key_id}", "{org_key_id}")
        names = re.findall(r"\{(\w+)\}", template)
        missing = set(names) - self.ids.keys()
        assert not missing, (
            f"{path}: add a value of {missing} to the world in control_plane/tests/browser"
        )
        return "/console" + template.format_map({name: quote(self.ids[name]) for name in names})


def shown_pages() -> list[str]:
    """Return the path of each page that a person can open."""
    return [
        page.path
        for page in PAGES
        if page.method == "GET" and not getattr(page, "is_stream", False)
    ]


@asynccontextmanager
async def created_world() -> AsyncGenerator[World]:
    """Create an example of each record, with a difficult name where it has one.

    Computes stay in the middle of a suspension.
    """
    durations = Durations(default=0.0, by_action={"suspend_compute": 3600.0})
    async with (
        LocalControlPlane(durations=durations) as control_plane,
        NeonClient(control_plane.api_key, base_url=control_plane.base_url) as neon,
    ):
        ids = await create_people(control_plane, neon)
        ids |= await create_project(control_plane, neon, ids["org_id"])
        route = "GET /projects/{project_id}/branches/{branch_id}/endpoints"
        control_plane.inject(Fault(route=route, branch=LONG, after=1, status=503, message=MARKUP))
        await control_plane.fail_next("create_branch", branch=LONG, after=1)
        yield World(control_plane, ids)


async def create_people(control_plane: LocalControlPlane, neon: NeonClient) -> dict[str, str]:
    """Create an organization with members, an invitation and a key, and a personal key."""
    org_id = await control_plane.create_organization(VERY_LONG)
    user_id = ""
    for number, name in enumerate((MARKUP, RIGHT_TO_LEFT, VERY_LONG)):
        user_id = await control_plane.create_user(name, f"{number}@example.com")
        await control_plane.add_member(org_id, user_id)
    members = await neon.organizations.list_members(org_id).collect()
    [member_id] = [one.member.id for one in members if one.member.user_id == user_id]
    guest = InvitationSpec(email=f"{'guest' * 10}@example.com", role="member")
    [invitation] = await neon.organizations.create_invitations(org_id, invitations=[guest])
    key = await neon.organizations.create_api_key(org_id, key_name=MARKUP)
    personal_key = await neon.api_keys.create(key_name=LONG[:64])
    return {
        "org_id": org_id,
        "user_id": user_id,
        "member_id": member_id,
        "invitation_id": invitation.id,
        "key_id": str(personal_key.id),
        "org_key_id": str(key.id),
    }


async def create_project(
    control_plane: LocalControlPlane, neon: NeonClient, org_id: str
) -> dict[str, str]:
    """Create projects and branches, one of them deleted, and operations with each status."""
    for name in (LONG[:64], RIGHT_TO_LEFT):
        await neon.projects.create(name=name, org_id=org_id)
    created = await neon.projects.create(name=MARKUP, org_id=org_id, wait=True)
    project_id = created.project.id
    branch, endpoints, compute = created.branch, created.endpoints, EndpointSpec(type="read_write")
    await neon.branches.update(project_id, branch.id, name=f"default {RIGHT_TO_LEFT}")
    deleted = await neon.branches.create(project_id, name=LONG, wait=True)
    await neon.branches.delete(project_id, deleted.branch.id, wait=True)
    for name in (MARKUP, RIGHT_TO_LEFT, LONG):
        child = await neon.branches.create(
            project_id, name=name, parent_id=branch.id, endpoints=[compute], wait=True
        )
        branch, endpoints = child.branch, child.endpoints
    role, database = MARKUP[:63], MARKUP[:60]
    for name in (role, LONG[:63]):
        await neon.roles.create(project_id, branch.id, name=name, wait=True)
    for name in (database, LONG[:63]):
        await neon.databases.create(
            project_id, branch.id, name=name, owner_name=LONG[:63], wait=True
        )
    await control_plane.fail_next("start_compute", error=f"{MARKUP} {VERY_LONG}")
    await neon.branches.create(project_id, endpoints=[compute])
    await neon.endpoints.suspend(project_id, endpoints[0].id)
    with suppress(NotFoundError):
        longest = "auth/oauth_providers/google"
        await neon.request("DELETE", f"/projects/{project_id}/branches/{LONG}/{longest}")
    return {
        "project_id": project_id,
        "branch_id": branch.id,
        "endpoint_id": endpoints[0].id,
        "database": database,
        "role": role,
    }
