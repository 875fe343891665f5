"""The dashboard of a project shows what happens, and how to connect."""

import pytest_asyncio
from playwright.async_api import Locator, Page, expect

from neonctl_async import NeonClient
from neonctl_async.types import EndpointSpec, ProjectCreated

READ_WRITE = EndpointSpec(type="read_write")


@pytest_asyncio.fixture(loop_scope="session")
async def project(neon: NeonClient) -> ProjectCreated:
    """A project whose operations have finished."""
    return await neon.projects.create(name="shop", wait=True)


@pytest_asyncio.fixture(loop_scope="session")
async def dashboard(page: Page, project: ProjectCreated) -> Page:
    """The dashboard of the project."""
    await page.goto(f"/console/projects/{project.project.id}")
    return page


def notice(page: Page) -> Locator:
    """Return the notice, whose text a script repeats for screen readers half a second later."""
    return page.locator("[data-notice]")


async def test_states_change_without_a_reload(
    dashboard: Page, neon: NeonClient, project: ProjectCreated
) -> None:
    await dashboard.evaluate("window.loaded = 1")
    compute = dashboard.locator(f"#compute-{project.endpoints[0].id}")
    await expect(compute.locator(".status")).to_have_text("Active")
    await neon.endpoints.suspend(project.project.id, project.endpoints[0].id, wait=True)
    await expect(compute.locator(".status")).to_have_text("Idle")
    await expect(compute.get_by_role("button", name="Start")).to_be_visible()
    branch = await neon.branches.create(project.project.id, name="preview", endpoints=[READ_WRITE])
    row = dashboard.locator(f"#branch-{branch.branch.id}")
    await expect(row).to_contain_text("Ready")
    await expect(row).to_contain_text("Active")
    await expect(dashboard.get_by_text("1 of 2 active")).to_be_visible()
    assert await dashboard.evaluate("window.loaded") == 1


async def test_open_dashboard_keeps_its_branch_and_follows_new_names(
    dashboard: Page, neon: NeonClient, project: ProjectCreated
) -> None:
    project_id, compute = project.project.id, dashboard.locator("tr[id^=compute-]")
    await expect(compute).to_have_attribute("id", f"compute-{project.endpoints[0].id}")
    other = await neon.branches.create(project_id, name="other", endpoints=[READ_WRITE], wait=True)
    await neon.branches.set_as_default(project_id, other.branch.id)
    await neon.branches.update(project_id, project.branch.id, name="renamed")
    await neon.projects.update(project_id, name="new shop")
    await expect(dashboard.get_by_role("heading", level=1)).to_have_text("new shop")
    await expect(dashboard.get_by_role("navigation", name="Project")).to_contain_text("new shop")
    await expect(dashboard.locator(f"#branch-{other.branch.id}")).to_contain_text("default")
    await expect(dashboard.get_by_role("heading", name="Computes of renamed")).to_be_visible()
    await expect(compute).to_have_attribute("id", f"compute-{project.endpoints[0].id}")


async def test_tree_is_indented_and_names_parents(
    dashboard: Page, neon: NeonClient, project: ProjectCreated
) -> None:
    project_id = project.project.id
    child = (await neon.branches.create(project_id, name="child", wait=True)).branch
    await neon.branches.create(project_id, name="leaf", parent_id=child.id, wait=True)
    await dashboard.reload()
    rows = dashboard.locator("tr[id^=branch-]")
    await expect(rows.locator("th a")).to_have_text(["main", "child", "leaf"])
    lefts = [
        await rows.nth(number).locator("th a").evaluate("link => link.getBoundingClientRect().x")
        for number in range(3)
    ]
    assert lefts[0] < lefts[1] < lefts[2]
    await expect(rows.nth(2).get_by_role("cell").first).to_have_text("child")


async def test_password_is_hidden_until_it_is_shown(
    dashboard: Page, neon: NeonClient, project: ProjectCreated
) -> None:
    found = await neon.projects.connection_uri(
        project.project.id, database_name="neondb", role_name="neondb_owner"
    )
    uri = found.reveal()
    password = uri.partition("@")[0].rpartition(":")[2]
    text = dashboard.get_by_label("connection string", exact=True)
    await expect(text).to_contain_text("postgresql://neondb_owner@")
    assert password not in await dashboard.content()
    await dashboard.locator("section", has=text).get_by_role("button", name="Show password").click()
    await expect(text).to_have_text(uri)
    assert password not in dashboard.url
    await dashboard.go_back()
    await expect(text).to_contain_text("postgresql://neondb_owner@")
    assert password not in await dashboard.content()


async def test_connection_string_of_another_branch_is_chosen_and_copied(
    dashboard: Page, neon: NeonClient, project: ProjectCreated
) -> None:
    created = await neon.branches.create(
        project.project.id, name="preview", endpoints=[READ_WRITE], wait=True
    )
    await dashboard.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await dashboard.reload()
    await dashboard.get_by_label("Branch", exact=True).select_option("preview")
    await dashboard.get_by_label("Connection pooling").check()
    await dashboard.get_by_role("button", name="Show", exact=True).click()
    await expect(dashboard.get_by_role("heading", name="Computes of preview")).to_be_visible()
    await dashboard.get_by_role("button", name="Copy the connection string").click()
    copied = await dashboard.evaluate("navigator.clipboard.readText()")
    assert copied.startswith(f"postgresql://neondb_owner@{created.endpoints[0].id}-pooler.")


async def test_password_of_a_new_role_is_shown_once(
    dashboard: Page, neon: NeonClient, project: ProjectCreated
) -> None:
    await dashboard.get_by_role("link", name="New role").click()
    await dashboard.get_by_label("Name").fill("reader")
    await dashboard.get_by_role("button", name="Create role").click()
    await expect(notice(dashboard)).to_contain_text("Role reader created.")
    password = await neon.roles.reveal_password(project.project.id, project.branch.id, "reader")
    shown = dashboard.get_by_label("password", exact=True)
    await expect(shown).to_have_text(password.reveal())
    await dashboard.reload()
    await expect(dashboard.get_by_text("The password was shown already.")).to_be_visible()


async def test_database_is_created_and_deleted(
    dashboard: Page, neon: NeonClient, project: ProjectCreated
) -> None:
    await dashboard.get_by_role("link", name="New database").click()
    await dashboard.get_by_label("Name").fill("sales & more")
    await dashboard.get_by_role("button", name="Create database").click()
    await expect(notice(dashboard)).to_contain_text("Database sales & more created.")
    await dashboard.goto(f"/console/projects/{project.project.id}")
    await dashboard.get_by_role("link", name="Delete database sales & more").click()
    await dashboard.get_by_role("button", name="Delete database").click()
    await expect(notice(dashboard)).to_contain_text("Database sales & more deleted.")
    found = await neon.databases.list(project.project.id, project.branch.id)
    assert [database.name for database in found] == ["neondb"]
