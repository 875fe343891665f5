"""A program that manages a project as the Terraform provider ``kislerdm/neon`` does.

It is written in Go and follows pointers of the response without a check, so a field that is missing
ends it. This program reads the same fields in the same order; a missing one is a KeyError.
"""

from typing import Any

from control_plane.tests.client import Client

NEW = {
    "name": "shop",
    "provisioner": "k8s-neonvm",
    "region_id": "aws-us-east-2",
    "store_passwords": True,
    "history_retention_seconds": 86400,
}


async def read_state(api: Client, project_id: str) -> dict[str, Any]:
    """Read a project as the provider refreshes its state."""
    path = f"/projects/{project_id}"
    project = (await api.get(path))["project"]
    settings, sizes = project["settings"], project["default_endpoint_settings"]
    listed = (await api.get(f"{path}/branches"))["branches"]
    [main] = [branch for branch in listed if branch["primary"]]
    path = f"{path}/branches/{main['id']}"
    computes = (await api.get(f"{path}/endpoints"))["endpoints"]
    [compute] = [one for one in computes if one["type"] == "read_write" and not one["disabled"]]
    databases = (await api.get(f"{path}/databases"))["databases"]
    oldest = min(databases, key=lambda database: database["created_at"])
    password = await api.get(f"{path}/roles/{oldest['owner_name']}/reveal_password")
    window = settings["maintenance_window"]
    fields = ("name", "region_id", "pg_version", "history_retention_seconds", "provisioner")
    return {
        **{name: project[name] for name in (*fields, "store_passwords")},
        "sizes": (sizes["autoscaling_limit_min_cu"], sizes["autoscaling_limit_max_cu"]),
        "suspend_timeout_seconds": sizes["suspend_timeout_seconds"],
        "allowed_ips": settings["allowed_ips"]["ips"],
        "protected_branches_only": settings["allowed_ips"]["protected_branches_only"],
        "block_public_connections": settings["block_public_connections"],
        "enable_logical_replication": settings["enable_logical_replication"],
        "window": (window["weekdays"], window["start_time"], window["end_time"]),
        "branch": (main["id"], main["name"]),
        "database": (oldest["name"], oldest["owner_name"], password["password"]),
        "compute": (compute["id"], compute["host"]),
    }


async def test_project_is_created_read_and_changed_without_a_difference(api: Client) -> None:
    created = await api.request("POST", "/projects", {"project": NEW})
    project_id = created["project"]["id"]
    state = await read_state(api, project_id)
    assert {name: state[name] for name in NEW} == NEW
    assert (state["allowed_ips"], state["protected_branches_only"]) == ([], False)
    # Every change sends the whole settings, and leaves out what nobody has chosen.
    renamed: dict[str, Any] = {"project": {"name": "store", "settings": {"allowed_ips": {}}}}
    await api.request("PATCH", f"/projects/{project_id}", renamed)
    assert await read_state(api, project_id) == {**state, "name": "store"}


async def test_chosen_settings_are_read_back(api: Client) -> None:
    project_id = (await api.request("POST", "/projects", {"project": NEW}))["project"]["id"]
    allowed = {"ips": ["192.0.2.1"], "protected_branches_only": True}
    settings = {"allowed_ips": allowed, "block_public_connections": True}
    await api.request("PATCH", f"/projects/{project_id}", {"project": {"settings": settings}})
    state = await read_state(api, project_id)
    assert (state["allowed_ips"], state["protected_branches_only"]) == (["192.0.2.1"], True)
    assert state["block_public_connections"]
    cleared: dict[str, Any] = {"project": {"settings": {"allowed_ips": {}}}}
    await api.request("PATCH", f"/projects/{project_id}", cleared)
    assert (await read_state(api, project_id))["allowed_ips"] == []
