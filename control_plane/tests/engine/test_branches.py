"""Names of branches, and branches that cannot be deleted."""

from control_plane.tests.client import Client


async def test_branch_names_are_unique_in_a_project(api: Client, project_id: str) -> None:
    created = (await api.branch(project_id, name="preview"))["branch"]["id"]
    body = {"branch": {"name": "preview"}}
    path = f"/projects/{project_id}/branches"
    await api.expect_error(409, "preview", "POST", path, body)
    other = (await api.branch(project_id, name="other"))["branch"]["id"]
    assert (await api.send("PATCH", f"{path}/{other}", body)).status == 409
    assert (await api.send("PATCH", f"{path}/{created}", body)).status == 200
    await api.request("DELETE", f"{path}/{created}")
    assert (await api.send("POST", path, body)).status == 201


async def test_root_default_parent_and_protected_branches_cannot_be_deleted(
    api: Client, project_id: str
) -> None:
    root = (await api.main_branch(project_id))["id"]
    parent = (await api.branch(project_id))["branch"]["id"]
    child = (await api.branch(project_id, parent_id=parent))["branch"]["id"]
    protected = (await api.branch(project_id, protected=True))["branch"]["id"]
    path = f"/projects/{project_id}/branches"
    await api.request("POST", f"{path}/{child}/set_as_default")
    reasons = {root: "root", child: "default", parent: "children", protected: "protected"}
    for branch_id, reason in reasons.items():
        await api.expect_error(422, reason, "DELETE", f"{path}/{branch_id}")
