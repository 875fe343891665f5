"""The roles of a branch, and their passwords."""

from control_plane.tests.client import Client
from control_plane.tests.console.visitor import Visitor


async def role_names(api: Client, branch_path: str) -> list[str]:
    return [role["name"] for role in (await api.get(f"{branch_path}/roles"))["roles"]]


async def password(api: Client, branch_path: str, role: str = "neondb_owner") -> str:
    found = await api.get(f"{branch_path}/roles/{role}/reveal_password")
    return str(found["password"])


async def test_password_of_a_new_role_is_shown_once(
    visitor: Visitor, api: Client, branch_path: str
) -> None:
    path = f"{branch_path}/roles/new"
    page = await visitor.post(await visitor.get(path), path, name="reader")
    assert page.path == f"{branch_path}/roles/password"
    assert await password(api, branch_path, "reader") in page.text
    assert "“Show password” in the list of roles shows it again" in page.text
    assert "once" not in page.text
    assert "Role reader created. Started: Apply config." in page.text
    page = await visitor.get(f"{branch_path}/roles/password")
    assert await password(api, branch_path, "reader") not in page.html
    assert "was shown already" in page.text


async def test_role_that_cannot_log_in_has_no_password(visitor: Visitor, branch_path: str) -> None:
    path = f"{branch_path}/roles/new"
    form = await visitor.get(path)
    form.form(path).fields["no_login"] = ""
    page = await visitor.post(form, path, name="group", no_login="yes")
    assert page.path == branch_path
    dashboard = await visitor.get(branch_path.partition("/branches")[0])
    assert "cannot log in" in dashboard.text
    assert f"/console{branch_path}/roles/reset?name=group" not in dashboard.links


async def test_taken_name_is_shown_with_the_error(visitor: Visitor, branch_path: str) -> None:
    path = f"{branch_path}/roles/new"
    page = await visitor.post(await visitor.get(path), path, name="neondb_owner")
    assert (page.status, "already exists" in page.text) == (409, True)
    assert page.form(path).fields["name"] == "neondb_owner"


async def test_password_is_reset_and_shown_once(
    visitor: Visitor, api: Client, branch_path: str
) -> None:
    before = await password(api, branch_path)
    path = f"{branch_path}/roles/reset"
    page = await visitor.post(await visitor.get(f"{path}?name=neondb_owner"), path)
    after = await password(api, branch_path)
    assert before != after
    assert after in page.text
    assert before not in page.html
    assert after not in (await visitor.get(f"{branch_path}/roles/password")).html


async def test_request_for_headers_does_not_use_up_a_new_password(
    visitor: Visitor, api: Client, branch_path: str
) -> None:
    path = f"{branch_path}/roles/reset"
    form = (await visitor.get(f"{path}?name=neondb_owner")).form(path)
    async with visitor.http.post(
        visitor.url(path), data=form.fields, allow_redirects=False
    ) as response:
        assert response.status == 303
    async with visitor.http.head(visitor.url(f"{branch_path}/roles/password")) as response:
        assert response.status == 200
    page = await visitor.get(f"{branch_path}/roles/password")
    assert await password(api, branch_path) in page.text


async def test_password_is_shown_on_request(
    visitor: Visitor, api: Client, branch_path: str
) -> None:
    secret = await password(api, branch_path)
    dashboard = await visitor.get(branch_path.partition("/branches")[0])
    assert secret not in dashboard.html
    page = await visitor.post(dashboard, f"{branch_path}/roles/password")
    assert secret in page.text
    assert secret not in page.path
    assert page.headers["Cache-Control"] == "no-store"


async def test_password_that_is_not_stored_cannot_be_shown(visitor: Visitor, api: Client) -> None:
    created = await api.project(store_passwords=False)
    path = f"/projects/{created['project']['id']}/branches/{created['branch']['id']}"
    page = await visitor.get(path)
    assert not [form for form in page.forms if form.action.endswith("password")]
    assert "Not available: the project does not store passwords" in page.text
    form = await visitor.get(f"{path}/roles/new")
    page = await visitor.post(form, f"{path}/roles/new", name="reader")
    assert "it is shown only once" in page.text
    data = {"csrf": form.form("/sign-out").fields["csrf"], "name": "reader"}
    page = await visitor.request("POST", f"{path}/roles/password", data=data)
    assert (page.status, "does not store passwords" in page.text) == (412, True)


async def test_role_is_deleted(visitor: Visitor, api: Client, branch_path: str) -> None:
    await api.request("POST", f"{branch_path}/roles", {"role": {"name": "reader"}})
    page = await visitor.get(f"{branch_path}/roles/delete?name=reader")
    page = await visitor.post(page, f"{branch_path}/roles/delete")
    assert "Role reader deleted. Started: Apply config." in page.text
    assert await role_names(api, branch_path) == ["neondb_owner"]


async def test_owner_of_a_database_cannot_be_deleted(
    visitor: Visitor, api: Client, branch_path: str
) -> None:
    path = f"{branch_path}/roles/delete"
    await api.request("POST", f"{branch_path}/roles", {"role": {"name": "reader"}})
    form = await visitor.get(f"{path}?name=reader")
    body = {"database": {"owner_name": "reader"}}
    await api.request("PATCH", f"{branch_path}/databases/neondb", body)
    page = await visitor.get(f"{path}?name=reader")
    assert "The role owns a database: neondb" in page.text
    assert [form for form in page.forms if form.action.endswith("/delete")] == []
    page = await visitor.post(form, path)
    assert (page.status, "owns the database" in page.text) == (422, True)


async def test_missing_role_is_not_found(visitor: Visitor, branch_path: str) -> None:
    for action in ("delete", "reset"):
        page = await visitor.get(f"{branch_path}/roles/{action}?name=other")
        assert (page.status, "'other' not found" in page.text) == (404, True)
