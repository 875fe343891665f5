"""Two people use the console at the same time, each in a browser of their own."""

import re

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from control_plane.tests.browser.people import OpenPage, sign_in_with_key
from control_plane.tests.browser.problems import Problems
from neonctl_async import NeonClient
from neonctl_local import LocalControlPlane


@pytest_asyncio.fixture(loop_scope="session")
async def second_page(open_page: OpenPage, control_plane: LocalControlPlane) -> Page:
    """The first page of the console. A member of the first organization is signed in."""
    user_id = await control_plane.create_user("Second User", "second@example.com")
    await control_plane.add_member(control_plane.org_id, user_id)
    page = await open_page()
    await sign_in_with_key(page, await control_plane.create_api_key("mine", user_id=user_id))
    return page


async def test_removed_member_loses_the_projects_of_the_organization(
    page: Page,
    second_page: Page,
    control_plane: LocalControlPlane,
    neon: NeonClient,
    problems: Problems,
) -> None:
    created = await neon.projects.create(name="shared", org_id=control_plane.org_id, wait=True)
    await second_page.goto(f"/console/projects/{created.project.id}")
    await expect(second_page.get_by_role("heading", level=1)).to_have_text("shared")

    await page.goto(f"/console/organizations/{control_plane.org_id}/members")
    row = page.get_by_role("row").filter(has_text="second@example.com")
    await row.get_by_role("link", name="Remove").click()
    await page.get_by_role("button", name="Remove").click()
    await expect(page.get_by_text("second@example.com", exact=True)).to_have_count(0)

    await second_page.reload()
    await expect(second_page.get_by_text("shared")).to_have_count(0)
    await second_page.goto("/console")
    await expect(second_page.get_by_text("shared")).to_have_count(0)
    problems.expect("status 40[34]: GET /console/projects/")


async def test_member_sees_no_button_that_only_administrators_may_use(
    second_page: Page, control_plane: LocalControlPlane, neon: NeonClient
) -> None:
    key = await neon.organizations.create_api_key(control_plane.org_id, key_name="ci")
    await second_page.goto(f"/console/organizations/{control_plane.org_id}/keys")
    row = second_page.locator(f"#key-{key.id}")
    await expect(row).to_contain_text("ci")
    await expect(row.get_by_role("link", name="Revoke")).to_have_count(0)
    await second_page.goto(f"/console/organizations/{control_plane.org_id}/members")
    await expect(second_page.get_by_role("link", name="Remove")).to_have_count(0)


async def test_key_that_another_person_has_just_revoked_is_reported(
    page: Page,
    second_page: Page,
    control_plane: LocalControlPlane,
    neon: NeonClient,
    problems: Problems,
) -> None:
    org_id = control_plane.org_id
    [member] = [
        one.member
        async for one in neon.organizations.list_members(org_id)
        if one.user.email == "second@example.com"
    ]
    await neon.organizations.update_member(org_id, member.id, role="admin")
    key = await neon.organizations.create_api_key(org_id, key_name="ci")
    confirmation = f"/console/organizations/{org_id}/keys/{key.id}/revoke"
    await page.goto(confirmation)
    await second_page.goto(confirmation)
    await second_page.get_by_role("button", name="Revoke").click()
    await expect(second_page.locator(f"#key-{key.id}")).to_have_count(0)

    await page.get_by_role("button", name="Revoke").click()
    await expect(page.get_by_role("alert")).to_be_visible()
    problems.expect(f"status 404: POST {confirmation}")


async def test_person_who_signed_in_with_a_revoked_key_is_signed_out(
    second_page: Page, problems: Problems
) -> None:
    await second_page.goto("/console/account/keys")
    row = second_page.get_by_role("row").filter(has_text="mine")
    await row.get_by_role("link", name="Revoke").click()
    await second_page.get_by_role("button", name="Revoke").click()
    await expect(second_page.get_by_role("heading", level=1)).to_have_text("Sign in")
    problems.expect("status 401: GET /console/account/keys")


@pytest.mark.parametrize("name", ["from the first", "from the second"])
async def test_change_of_one_person_appears_on_the_page_of_the_other(
    page: Page, second_page: Page, neon: NeonClient, control_plane: LocalControlPlane, name: str
) -> None:
    created = await neon.projects.create(name="shared", org_id=control_plane.org_id, wait=True)
    url = f"/console/projects/{created.project.id}"
    author, reader = (page, second_page) if name == "from the first" else (second_page, page)
    await reader.goto(url)
    await author.goto(f"{url}/branches/new")
    await author.get_by_label(re.compile("^Name")).fill(name)
    await author.get_by_role("button", name="Create branch").click()
    await expect(reader.get_by_role("link", name=name)).to_be_visible()
