"""Names of branches, branches that cannot be deleted, and protected ones."""

import pytest

from control_plane.tests.client import Client


@pytest.mark.fact("branches-4")
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


@pytest.mark.fact("branches-20", "branches-21", "protected-1")
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


@pytest.mark.fact("protected-2", "protected-3", "protected-4")
async def test_protected_branch_is_not_reset_and_keeps_its_computes_and_project(
    api: Client, project_id: str
) -> None:
    parent = (await api.main_branch(project_id))["id"]
    created = await api.branch(project_id, compute=True, protected=True)
    branch, compute = created["branch"]["id"], created["endpoints"][0]["id"]
    path = f"/projects/{project_id}"
    refused: list[tuple[str, str, object]] = [
        ("POST", f"{path}/branches/{branch}/restore", {"source_branch_id": parent}),
        ("DELETE", f"{path}/endpoints/{compute}", None),
        ("DELETE", path, None),
    ]
    for request in refused:
        await api.expect_error(422, "unprotect", *request)
    await api.request("PATCH", f"{path}/branches/{branch}", {"branch": {"protected": False}})
    for request in refused:
        await api.request(*request)


@pytest.mark.fact("protected-5")
async def test_branch_of_a_protected_one_has_new_passwords(api: Client, project_id: str) -> None:
    async def password(branch_id: str) -> str:
        path = f"/projects/{project_id}/branches/{branch_id}/roles/{role}/reveal_password"
        return str((await api.get(path))["password"])

    root = (await api.main_branch(project_id))["id"]
    path = f"/projects/{project_id}/branches/{root}"
    role = (await api.get(f"{path}/roles"))["roles"][0]["name"]
    same = (await api.branch(project_id))["branch"]["id"]
    await api.request("PATCH", path, {"branch": {"protected": True}})
    other = (await api.branch(project_id))["branch"]["id"]
    assert await password(same) == await password(root)
    assert await password(other) != await password(root)
