"""The SQL page, in a browser, with a real database."""

import asyncio
from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Page, expect

from control_plane.tests.browser.accessibility import check_accessibility
from control_plane.tests.browser.people import OpenPage, sign_in
from control_plane.tests.browser.problems import Problems
from neonctl_async import NeonClient
from neonctl_local import LocalControlPlane
from tests.support.postgres import skip_without_postgres


@pytest_asyncio.fixture(loop_scope="session")
async def control_plane() -> AsyncIterator[LocalControlPlane]:
    """A local control plane with real databases."""
    await asyncio.to_thread(skip_without_postgres)
    async with LocalControlPlane(postgres=True) as control_plane:
        yield control_plane


@pytest_asyncio.fixture(loop_scope="session")
async def sql(page: Page, neon: NeonClient) -> Page:
    """The SQL page of a project."""
    created = await neon.projects.create(name="shop", wait=True)
    await page.goto(f"/console/projects/{created.project.id}/sql")
    return page


async def run(page: Page, statement: str, key: str = "Control+Enter") -> None:
    """Type a statement, and run it with the keyboard."""
    await page.get_by_label("Statement").fill(statement)
    await page.get_by_label("Statement").press(key)


async def test_statement_is_run_with_the_keyboard(sql: Page, problems: Problems) -> None:
    problems.expect("422")
    await run(sql, "CREATE TABLE plants (name text, height int)")
    await expect(sql.get_by_role("alert")).to_contain_text("select “Allow changes”")
    await sql.get_by_label("Allow changes").check()
    await run(sql, "CREATE TABLE plants (name text, height int)")
    await expect(sql.get_by_role("status")).to_contain_text("CREATE TABLE")
    await run(sql, "INSERT INTO plants VALUES ('<b>fern</b>', 30), ('\u202eivy', NULL)")
    await expect(sql.get_by_role("status")).to_contain_text("INSERT 0 2")
    await sql.get_by_label("Allow changes").uncheck()
    await run(sql, "SELECT * FROM plants")
    await expect(sql.locator("table.result th")).to_have_text(["name", "height"])
    await expect(sql.locator("table.result td")).to_have_text(
        ["<b>fern</b>", "30", "\u202eivy", "NULL"]
    )
    await expect(sql.get_by_label("Allow changes")).not_to_be_checked()
    await check_accessibility(sql)


async def test_error_shows_its_line_and_keeps_the_statement(sql: Page, problems: Problems) -> None:
    problems.expect("422")
    await run(sql, "SELECT *\nFROM nowhere")
    await expect(sql.get_by_role("alert")).to_contain_text('relation "nowhere" does not exist')
    await expect(sql.locator(".place")).to_have_text("FROM nowhere\n     ^")
    await expect(sql.get_by_label("Statement")).to_have_value("SELECT *\nFROM nowhere")
    await check_accessibility(sql)


async def test_wide_result_scrolls_in_its_frame_and_long_values_open(
    sql: Page, open_page: OpenPage, control_plane: LocalControlPlane
) -> None:
    phone = await open_page(viewport={"width": 360, "height": 800})
    await sign_in(phone, control_plane.console_url)
    await phone.goto(sql.url)
    await run(phone, "SELECT repeat('long ', 100) AS a, repeat('x', 150) AS b, now() AS c")
    await expect(phone.locator("table.result")).to_be_visible()
    width = await phone.evaluate("document.documentElement.scrollWidth")
    assert width == 360
    value = phone.locator("table.result details")
    await expect(value.locator("> bdi")).to_be_hidden()
    await value.locator("summary").click()
    await expect(value.locator("> bdi")).to_be_visible()


async def test_button_is_level_with_the_fields_that_it_fills(sql: Page) -> None:
    fields = sql.locator(".choices > :is(.field, .button)")
    ends = await fields.evaluate_all("all => all.map(one => one.getBoundingClientRect().bottom)")
    assert len(ends) == 4
    assert max(ends) - min(ends) < 2
