"""The rules of API keys that people create and revoke in the console (sections 2.1, 3.1 and 5)."""

import re

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from control_plane.tests.browser.people import OpenPage
from control_plane.tests.browser.problems import Problems
from neonctl_async import AuthenticationError, NeonClient, NotFoundError, PermissionDeniedError
from neonctl_local import LocalControlPlane


@pytest_asyncio.fixture(loop_scope="session")
async def project_id(control_plane: LocalControlPlane, neon: NeonClient) -> str:
    """A project of the first organization."""
    created = await neon.projects.create(name="shop", org_id=control_plane.org_id, wait=True)
    return created.project.id


async def create_key(page: Page, path: str, name: str, **choices: str) -> str:
    """Create a key on a page, and return it. ``choices`` has the type and the project."""
    await page.goto(f"/console/{path}/keys/new")
    await page.get_by_label("Name").fill(name)
    if "type" in choices:
        await page.get_by_role("radio", name=choices["type"]).check()
    if "project" in choices:
        await page.get_by_label("Project", exact=True).select_option(choices["project"])
    await page.get_by_role("button", name="Create").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text(re.compile("API key created"))
    return await page.locator(".copyable code.id").inner_text()


async def sign_in_with_key(page: Page, key: str, problems: Problems) -> None:
    problems.expect("status 401: GET /console")
    await page.goto("/console")
    await page.get_by_label("Personal API key or sign-in link").fill(key)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Projects")


async def test_project_scoped_key_is_a_member_of_one_project(
    page: Page, control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    """Rules 1 to 3."""
    organization = f"organizations/{control_plane.org_id}"
    other = await neon.projects.create(name="other", org_id=control_plane.org_id)
    key = await create_key(page, organization, "preview", type="Project-scoped", project=project_id)
    async with NeonClient(key, base_url=control_plane.base_url) as scoped:
        assert (await scoped.projects.get(project_id)).name == "shop"
        with pytest.raises(PermissionDeniedError):
            await scoped.projects.delete(project_id)
        with pytest.raises(NotFoundError):
            await scoped.projects.get(other.project.id)
        with pytest.raises(PermissionDeniedError):
            await scoped.projects.create(name="new", org_id=control_plane.org_id)
        with pytest.raises(PermissionDeniedError):
            await scoped.organizations.create_api_key(control_plane.org_id, key_name="more")


async def test_key_of_a_project_stops_working_when_the_project_leaves(
    page: Page, control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    """Rule 4."""
    organization = f"organizations/{control_plane.org_id}"
    key = await create_key(page, organization, "preview", type="Project-scoped", project=project_id)
    elsewhere = await control_plane.create_organization("Elsewhere")
    await neon.organizations.transfer_projects(
        control_plane.org_id, destination_org_id=elsewhere, project_ids=[project_id]
    )
    await page.goto(f"/console/{organization}/keys")
    await expect(page.get_by_role("row").filter(has_text="preview")).to_have_count(0)
    async with NeonClient(key, base_url=control_plane.base_url) as scoped:
        with pytest.raises(AuthenticationError):
            await scoped.projects.get(project_id)


async def test_organization_key_has_the_rights_of_an_administrator(
    page: Page, control_plane: LocalControlPlane, project_id: str
) -> None:
    """Rule 5."""
    organization = f"organizations/{control_plane.org_id}"
    key = await create_key(page, organization, "CI", type="Organization")
    async with NeonClient(key, base_url=control_plane.base_url) as administrator:
        await administrator.projects.delete(project_id)
        await page.goto(f"/console/{organization}/keys")
        await page.get_by_role("link", name="Revoke API key CI").click()
        await page.get_by_role("button", name="Revoke").click()
        await expect(page.get_by_text("The organization has no API keys")).to_be_visible()
        with pytest.raises(AuthenticationError):
            await administrator.projects.list().collect()


async def test_lost_key_is_revoked_and_replaced(
    page: Page, control_plane: LocalControlPlane
) -> None:
    """Rule 6: no page shows the key again."""
    lost = await create_key(page, "account", "laptop")
    await page.goto("/console/account/keys")
    assert lost not in await page.content()
    await page.get_by_role("link", name="Revoke API key laptop").click()
    assert lost not in await page.content()
    await page.get_by_role("button", name="Revoke").click()
    await expect(page.get_by_role("main").get_by_text("API key revoked")).to_be_visible()
    replacement = await create_key(page, "account", "laptop")
    assert replacement != lost
    async with NeonClient(replacement, base_url=control_plane.base_url) as replaced:
        await replaced.users.me()


async def test_only_the_owner_sees_and_revokes_a_personal_key(
    page: Page, open_page: OpenPage, control_plane: LocalControlPlane, problems: Problems
) -> None:
    await create_key(page, "account", "mine")
    await page.goto("/console/account/keys")
    path = await page.get_by_role("link", name="Revoke API key mine").get_attribute("href")
    assert path is not None
    user_id = await control_plane.create_user("Bea", "bea@example.com")
    key = await control_plane.create_api_key("theirs", user_id=user_id)
    bea = await open_page()
    await sign_in_with_key(bea, key, problems)
    await bea.goto("/console/account/keys")
    await expect(bea.get_by_text("theirs", exact=True)).to_be_visible()
    await expect(bea.get_by_text("mine", exact=True)).to_have_count(0)
    problems.expect(f"status 404: GET {path}")
    await bea.goto(path)
    await expect(bea.get_by_text("not found")).to_be_visible()


async def test_person_who_leaves_an_organization_loses_its_projects(
    open_page: OpenPage, control_plane: LocalControlPlane, project_id: str, problems: Problems
) -> None:
    user_id = await control_plane.create_user("Bea", "bea@example.com")
    await control_plane.add_member(control_plane.org_id, user_id)
    key = await control_plane.create_api_key("sign-in", user_id=user_id)
    bea = await open_page()
    await sign_in_with_key(bea, key, problems)
    await bea.goto(f"/console/projects/{project_id}/operations")
    await expect(bea.get_by_role("rowheader").first).to_be_visible()
    await bea.goto(f"/console/organizations/{control_plane.org_id}/members")
    await bea.get_by_role("link", name="Leave organization").click()
    await bea.get_by_role("button", name="Leave").click()
    # The announcement for screen readers has the same text.
    await expect(bea.locator("[data-notice]")).to_have_text("You have left the organization.")
    problems.expect(f"status 404: GET /console/projects/{project_id}")
    await bea.goto(f"/console/projects/{project_id}/operations")
    await expect(bea.get_by_text("not found")).to_be_visible()
    async with NeonClient(key, base_url=control_plane.base_url) as neon:
        with pytest.raises(NotFoundError):
            await neon.projects.get(project_id)
