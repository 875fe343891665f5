"""A project with a snapshot, for the tests of restores."""

from typing import Any

from control_plane.tests.client import Client, branch_path_of
from neonctl_local import ManualClock


class RestoreScenario:
    """A project whose default branch has a running compute and a snapshot."""

    def __init__(self, api: Client, clock: ManualClock) -> None:
        self.api = api
        self.clock = clock

    async def set_up(self) -> None:
        created = await self.api.project()
        self.project_id = created["project"]["id"]
        self.path = f"/projects/{self.project_id}"
        self.main = created["branch"]["id"]
        self.main_path = branch_path_of(created)
        self.endpoint = created["endpoints"][0]["id"]
        self.clock.advance(9)
        self.snapshot = await self.take_snapshot(self.main)
        self.clock.advance(9)

    async def take_snapshot(self, branch_id: str) -> str:
        """Take a snapshot of a branch. Return its id."""
        taken = await self.api.request("POST", f"{self.path}/branches/{branch_id}/snapshot")
        return str(taken["snapshot"]["id"])

    async def add_root(self) -> str:
        """Create a second root branch, and use a snapshot of it from now on. Return its id."""
        created = await self.api.branch(self.project_id, name="root", init_source="schema-only")
        branch_id = str(created["branch"]["id"])
        self.snapshot = await self.take_snapshot(branch_id)
        return branch_id

    async def restore(self, **body: object) -> Any:  # Any: as Client.get
        """Restore the snapshot. Return the response."""
        return await self.api.request("POST", self.restore_path(self.snapshot), body or None)

    async def finished_restore(self, **body: object) -> str:
        """Restore the snapshot, and let its operations finish. Return the id of the branch."""
        restored = await self.restore(**body)
        self.clock.advance(9)
        return str(restored["branch"]["id"])

    def restore_path(self, snapshot_id: str) -> str:
        """Return the path of the request that restores a snapshot."""
        return f"{self.path}/snapshots/{snapshot_id}/restore"

    def finalize_path(self, branch_id: str) -> str:
        """Return the path of the request that finalizes a restored branch."""
        return f"{self.path}/branches/{branch_id}/finalize_restore"

    async def branches(self) -> dict[str, Any]:
        """Return the branches by name."""
        page = await self.api.get(f"{self.path}/branches")
        return {branch["name"]: branch for branch in page["branches"]}
