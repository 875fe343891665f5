"""Organizations, members and users in a browser: two people at the same time."""

from playwright.async_api import Page, expect

from control_plane.tests.browser.people import OpenPage
from control_plane.tests.browser.problems import Problems
from neonctl_async import NeonClient
from neonctl_local import LocalControlPlane


async def create_user(page: Page, name: str, email: str) -> str:
    """Create a user by clicks. Return the key that the page shows."""
    await page.goto("/console/users")
    await page.get_by_role("link", name="Create user").click()
    await page.get_by_label("Name").fill(name)
    await page.get_by_label("Email address").fill(email)
    await page.get_by_role("button", name="Create").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("User created")
    return await page.locator(".copyable code.id").inner_text()


async def signed_in(open_page: OpenPage, key: str, problems: Problems) -> Page:
    """Sign in with a key, in another browser."""
    problems.expect("status 401: GET /console")
    page = await open_page()
    await page.goto("/console")
    await page.get_by_label("Personal API key").fill(key)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Projects")
    return page


async def invite(page: Page, control_plane: LocalControlPlane, email: str) -> None:
    """Invite a person as a member of the first organization."""
    await page.goto(f"/console/organizations/{control_plane.org_id}/members")
    await page.get_by_label("Email address").fill(email)
    await page.get_by_role("button", name="Invite").click()


async def test_created_user_signs_in_is_invited_and_removed(
    page: Page, open_page: OpenPage, control_plane: LocalControlPlane, problems: Problems
) -> None:
    members = f"/console/organizations/{control_plane.org_id}/members"
    bea = await signed_in(open_page, await create_user(page, "Bea", "bea@example.com"), problems)
    await bea.goto("/console/organizations")
    await expect(bea.get_by_text("You are in no organization")).to_be_visible()
    await invite(page, control_plane, "bea@example.com")
    await expect(page.locator("[data-notice]")).to_contain_text("bea@example.com has an account")
    await bea.goto(members)
    await expect(bea.get_by_role("row", name="bea@example.com")).to_contain_text("member")
    await expect(bea.get_by_role("link", name="Change role")).to_have_count(0)
    await page.get_by_role("link", name="Remove bea@example.com").click()
    await expect(page.get_by_text("loses access to all projects")).to_be_visible()
    await page.get_by_role("button", name="Remove").click()
    await expect(page.locator("[data-notice]")).to_contain_text("Member removed")
    problems.expect(f"status 404: GET {members}")
    connection = bea.get_by_role("complementary", name="Connection")
    await expect(connection).to_contain_text("This page is not available any more")
    await bea.reload()
    await expect(bea.get_by_text("not found")).to_be_visible()


async def test_member_creates_project_scoped_keys_and_revokes_none(
    page: Page,
    open_page: OpenPage,
    control_plane: LocalControlPlane,
    neon: NeonClient,
    problems: Problems,
) -> None:
    await neon.projects.create(name="shop", org_id=control_plane.org_id)
    key = await create_user(page, "Bea", "bea@example.com")
    await invite(page, control_plane, "bea@example.com")
    bea = await signed_in(open_page, key, problems)
    await bea.goto(f"/console/organizations/{control_plane.org_id}/keys")
    await bea.get_by_role("link", name="Create new API key").first.click()
    await expect(bea.get_by_role("radio")).to_have_count(0)
    await bea.get_by_label("Name").fill("preview")
    await bea.get_by_label("Project").select_option(index=1)
    await bea.get_by_role("button", name="Create").click()
    await expect(bea.get_by_text("with the rights of a member")).to_be_visible()
    await bea.get_by_role("link", name="Done").click()
    await expect(bea.get_by_role("row", name="preview")).to_contain_text("by Bea")
    await expect(bea.get_by_role("link", name="Revoke")).to_have_count(0)
    await page.goto(f"/console/organizations/{control_plane.org_id}/keys")
    await expect(page.get_by_role("link", name="Revoke API key preview")).to_be_visible()


async def test_role_is_changed(page: Page, control_plane: LocalControlPlane) -> None:
    await create_user(page, "Bea", "bea@example.com")
    await invite(page, control_plane, "bea@example.com")
    await page.get_by_role("link", name="Change role of bea@example.com").click()
    await page.get_by_label("Administrator").check()
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("row", name="bea@example.com")).to_contain_text("admin")


async def test_last_administrator_reads_why_leaving_is_refused(
    page: Page, control_plane: LocalControlPlane, problems: Problems
) -> None:
    path = f"/console/organizations/{control_plane.org_id}/leave"
    problems.expect(f"status 422: POST {path}")
    await page.goto(f"/console/organizations/{control_plane.org_id}/members")
    await page.get_by_role("link", name="Leave organization").click()
    await page.get_by_role("button", name="Leave").click()
    await expect(page.get_by_role("alert")).to_contain_text("needs at least one administrator")


async def test_recipient_of_an_invitation_signs_up(
    page: Page, open_page: OpenPage, control_plane: LocalControlPlane, problems: Problems
) -> None:
    await invite(page, control_plane, "cal@example.com")
    await page.get_by_role("button", name="New secret for the invitation of cal@").click()
    secret = await page.locator(".copyable code.id").inner_text()
    await page.get_by_role("link", name="accept the invitation").click()
    await page.get_by_label("Name").fill("Cal")
    await page.get_by_label("Secret").fill(secret)
    await page.get_by_role("button", name="Accept").click()
    key = await page.locator(".copyable code.id").inner_text()
    cal = await signed_in(open_page, key, problems)
    await cal.goto(f"/console/organizations/{control_plane.org_id}/members")
    await expect(cal.get_by_role("row", name="cal@example.com")).to_contain_text("you")


async def test_person_creates_an_organization_and_leaves_it_to_another(
    page: Page, problems: Problems, open_page: OpenPage
) -> None:
    key = await create_user(page, "Bea", "bea@example.com")
    await page.get_by_role("link", name="Organizations").click()
    await page.get_by_role("link", name="Create organization").click()
    await page.get_by_label("Name").fill("Team")
    await page.get_by_role("button", name="Create").click()
    await page.get_by_label("Email address").fill("bea@example.com")
    await page.get_by_label("Role").select_option("admin")
    await page.get_by_role("button", name="Invite").click()
    await page.get_by_role("link", name="Leave organization").click()
    await page.get_by_role("button", name="Leave").click()
    await expect(page.locator("[data-notice]")).to_contain_text("You have left the organization")
    await expect(page.get_by_role("row", name="Team")).to_have_count(0)
    bea = await signed_in(open_page, key, problems)
    await bea.goto("/console/organizations")
    await expect(bea.get_by_role("row", name="Team")).to_contain_text("admin")
