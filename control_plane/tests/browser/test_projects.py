"""Projects are created, found, renamed, deleted and recovered in a browser."""

import re

from playwright.async_api import Page, expect

from control_plane.tests.browser.problems import Problems
from neonctl_async import NeonClient


async def names(neon: NeonClient) -> list[str]:
    return [project.name async for project in neon.projects.list()]


async def test_first_project_is_created_from_the_empty_list(page: Page, neon: NeonClient) -> None:
    await expect(page.get_by_text("There are no projects yet.")).to_be_visible()
    command = page.get_by_label("command that creates a project", exact=True)
    await expect(command).to_contain_text("curl -X POST")
    await page.get_by_role("link", name="New project").click()
    await page.get_by_label("Name").fill("shop")
    await page.get_by_label("Postgres version").select_option("Postgres 16")
    await page.get_by_label("Region").select_option("AWS Europe Central 1 (Frankfurt)")
    await page.get_by_role("button", name="Create project").click()
    await expect(page.get_by_role("main").get_by_text("Project shop created.")).to_be_visible()
    await expect(page.get_by_role("heading", level=1)).to_have_text("shop")
    (project,) = [project async for project in neon.projects.list()]
    assert (project.pg_version, project.region_id) == (16, "aws-eu-central-1")


async def test_project_is_found_renamed_deleted_and_recovered(page: Page, neon: NeonClient) -> None:
    await neon.projects.create(name="blog", wait=True)
    await neon.projects.create(name="shop", wait=True)
    await page.reload()
    await page.get_by_label("Name or ID").fill("sho")
    await page.keyboard.press("Enter")
    await expect(page.locator("tbody tr")).to_have_count(1)
    await page.get_by_role("link", name="shop").click()
    await page.get_by_role("link", name="Rename").click()
    await page.get_by_label("Name").fill("store")
    await page.get_by_role("button", name="Rename").click()
    await expect(page.get_by_role("main").get_by_text("Project renamed to store.")).to_be_visible()
    await page.get_by_role("link", name="Delete", exact=True).first.click()
    await expect(page.get_by_role("listitem").filter(has_text="1 branch")).to_contain_text("main")
    await page.get_by_role("link", name="Cancel").click()
    assert await names(neon) == ["store", "blog"]
    await page.get_by_role("link", name="Delete", exact=True).first.click()
    await page.get_by_label("Name of the project").fill("store")
    await page.get_by_role("button", name="Delete project").click()
    await expect(page.get_by_role("main").get_by_text("Project store deleted.")).to_be_visible()
    await expect(page.locator("tbody tr")).to_have_count(1)
    assert await names(neon) == ["blog"]
    await page.get_by_role("link", name="Deleted projects").click()
    await page.get_by_role("button", name="Recover project store").click()
    await expect(page.get_by_role("main").get_by_text("Project store recovered.")).to_be_visible()
    assert await names(neon) == ["store", "blog"]


async def test_refused_project_keeps_what_was_typed(
    page: Page, neon: NeonClient, problems: Problems
) -> None:
    problems.expect("status 400: POST /console/projects/new")
    await page.get_by_role("link", name="New project").click()
    await page.get_by_label("Name").evaluate("field => field.removeAttribute('maxlength')")
    await page.get_by_label("Name").fill("x" * 257)
    await page.get_by_label("Postgres version").select_option("Postgres 15")
    async with page.expect_response(re.compile("/projects/new")) as response:
        await page.get_by_role("button", name="Create project").click()
    assert (await response.value).status == 400
    await expect(page.get_by_role("alert")).to_contain_text("project.name")
    await expect(page.get_by_role("alert")).to_be_focused()
    await expect(page.get_by_label("Name")).to_have_value("x" * 257)
    await expect(page.get_by_label("Postgres version")).to_have_value("15")
    assert await names(neon) == []
