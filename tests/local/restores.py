"""What the tests of restores begin with."""

from typing import Any

from neonctl_async.local import ManualClock
from tests.local.client import Client


class Restores:
    """A project whose default branch, with a compute that runs, has a snapshot."""

    def __init__(self, api: Client, clock: ManualClock) -> None:
        self.api = api
        self.clock = clock

    async def begin(self) -> None:
        made = await self.api.project()
        self.path = f"/projects/{made['project']['id']}"
        self.main = made["branch"]["id"]
        self.endpoint = made["endpoints"][0]["id"]
        self.clock.advance(9)
        self.snapshot = await self.take()
        self.clock.advance(9)

    async def take(self) -> str:
        """A new snapshot of the default branch."""
        taken = await self.api.done("POST", f"{self.path}/branches/{self.main}/snapshot")
        return str(taken["snapshot"]["id"])

    async def child(self) -> str:
        """A new branch, the snapshot being one of it from now on."""
        made = await self.api.branch(self.path.rpartition("/")[2], name="child")
        branch_id = str(made["branch"]["id"])
        path = f"{self.path}/branches/{branch_id}/snapshot"
        self.snapshot = (await self.api.done("POST", path))["snapshot"]["id"]
        return branch_id

    async def restore(self, **body: object) -> Any:  # Any: as Client.get
        """The answer to a restore of the snapshot."""
        path = f"{self.path}/snapshots/{self.snapshot}/restore"
        return await self.api.done("POST", path, body or None)

    async def branches(self) -> dict[str, Any]:
        """The branches by name."""
        page = await self.api.get(f"{self.path}/branches")
        return {branch["name"]: branch for branch in page["branches"]}


def actions(answer: Any) -> list[str]:
    """The actions of the operations of an answer."""
    return [operation["action"] for operation in answer["operations"]]
