"""The compute of the first branch of a project, for the tests."""

from typing import Any

from control_plane.tests.client import Client, actions_of


# Any: as Client.get.
async def compute(api: Client, project_id: str) -> Any:
    """Return the compute of the first branch of a project."""
    return (await api.get(f"/projects/{project_id}/endpoints"))["endpoints"][0]


async def run_action(api: Client, project_id: str, action: str) -> list[str]:
    """Start, suspend or restart the compute. Return the actions of the started operations."""
    endpoint = await compute(api, project_id)
    path = f"/projects/{project_id}/endpoints/{endpoint['id']}/{action}"
    return actions_of(await api.request("POST", path))


async def compute_state(api: Client, project_id: str) -> tuple[str, str | None]:
    """Return the current state and the pending state of the compute."""
    endpoint = await compute(api, project_id)
    return endpoint["current_state"], endpoint.get("pending_state")
