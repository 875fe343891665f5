"""Create the missing projects of a fleet."""

import asyncio
import copy
from collections.abc import Mapping
from functools import partial

from neonctl_async.errors import NeonError
from neonctl_async.models.projects import NewProject
from neonctl_async.provisioning.creation import may_have_been_created, search
from neonctl_async.provisioning.fleet.client import FleetClient
from neonctl_async.provisioning.fleet.tenants import or_unset


class NewProjects:
    """The projects that a run creates, one after another, at the first request for each.

    Projects may share a name, so a creation is never repeated: a delayed request could create a
    second project. A process that is killed has at most one creation in flight.
    """

    def __init__(
        self, neon: FleetClient, projects: Mapping[str, NewProject], org_id: str | None
    ) -> None:
        self._neon = neon
        self._projects = projects
        self._org_id = org_id
        self._ids: dict[str, str] = {}
        self._errors: dict[str, NeonError] = {}
        self._one_at_a_time = asyncio.Lock()

    async def id_of(self, name: str) -> str:
        """Return the id of a project. Create the project on the first call."""
        async with self._one_at_a_time:
            if (known := self._errors.get(name)) is not None:
                # Each tenant raises its own copy, or the traceback would grow with each of them.
                raise copy.copy(known) from known.__cause__
            if name not in self._ids:
                try:
                    self._ids[name] = await self._create(name)
                except NeonError as error:
                    self._errors[name] = error
                    raise
            return self._ids[name]

    async def _create(self, name: str) -> str:
        wanted: NewProject = {**self._projects[name], "org_id": or_unset(self._org_id)}
        try:
            created = await self._neon.projects.create(**wanted)
        except NeonError as error:
            if not may_have_been_created(error):
                raise
            found = await search(partial(self._find, name))
            if found is None:
                error.add_note(
                    "the project was not found: Neon may still create it; run the fleet again"
                )
                raise
            return found
        return created.project.id

    async def _find(self, name: str) -> str | None:
        """Return the id of the only project with this name."""
        listed = self._neon.projects.list(search=name, org_id=or_unset(self._org_id))
        found = [project.id async for project in listed if project.name == name]
        return found[0] if len(found) == 1 else None
