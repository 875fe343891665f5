"""Where the parts of pages are: on a phone, on a tablet and on a screen."""

from contextlib import suppress

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, ViewportSize, expect

from neonctl_async import EndpointSpec, NeonClient, OperationFailedError
from neonctl_async.types import ProjectCreated
from neonctl_local import LocalControlPlane

PHONE, TABLET = (ViewportSize(width=width, height=800) for width in (360, 768))
LONG = "preview/pr-121-add-a-checkout-flow-with-three-payment-providers"
DEFAULT = "br-restless-waterfall-12345678"
"""A name as long as long ids, which are the default names."""

LINES = """() => [...document.querySelectorAll("tbody :is(.name, time, .problem bdi)")]
    .filter((one) => one.checkVisibility())
    .map((one) => {
        const range = document.createRange();
        range.selectNodeContents(one);
        const tops = [...range.getClientRects()].map(({top}) => Math.round(top));
        return [one.textContent, new Set(tops).size];
    })"""
"""Returns names, times and errors of rows, and the number of lines that each needs."""

TWO_LINES = 66
"""A card of two lines is lower than this, and one of three is higher."""


@pytest_asyncio.fixture(loop_scope="session")
async def project(neon: NeonClient) -> ProjectCreated:
    """A project with a branch that has a compute, and one that has none."""
    created = await neon.projects.create(name="shop", wait=True)
    await neon.branches.create(
        created.project.id, name=LONG, endpoints=[EndpointSpec(type="read_write")], wait=True
    )
    await neon.branches.create(created.project.id, name="bare", wait=True)
    return created


async def box(locator: Locator) -> dict[str, float]:
    """Return where an element is."""
    found = await locator.bounding_box()
    assert found is not None, "the element is not visible"
    return {
        "left": found["x"],
        "right": found["x"] + found["width"],
        "top": found["y"],
        "bottom": found["y"] + found["height"],
        "height": found["height"],
    }


async def test_branches_and_projects_are_cards_of_two_lines_on_a_phone(
    page: Page, project: ProjectCreated
) -> None:
    await page.set_viewport_size(PHONE)
    await page.goto("/console")
    assert (await box(page.locator("tbody tr")))["height"] < TWO_LINES
    await page.goto(f"/console/projects/{project.project.id}")
    rows = page.locator("tr[id^=branch-]")
    for name in ("main", "bare"):
        card = rows.filter(has=page.get_by_role("rowheader", name=name))
        assert (await box(card))["height"] < TWO_LINES, name
        state, parent = card.locator(".status").first, card.locator("time")
        assert (await box(state))["bottom"] <= (await box(parent))["top"] + 2, name


async def test_default_names_need_one_line_on_a_screen_and_errors_two(
    page: Page, neon: NeonClient, control_plane: LocalControlPlane
) -> None:
    project_id = (await neon.projects.create(wait=True)).project.id
    error = "could not read block 42 of the data of the parent: the storage of the region is busy"
    await control_plane.fail_next("start_compute", error=f"{error}, and its replica is behind")
    compute = EndpointSpec(type="read_write")
    created = await neon.branches.create(project_id, name=DEFAULT, endpoints=[compute])
    with suppress(OperationFailedError):
        await neon.operations.wait(created)
    await neon.branches.delete(project_id, created.branch.id, wait=True)
    await neon.branches.create(project_id, name=DEFAULT, endpoints=[compute], wait=True)
    dashboard = f"/projects/{project_id}"
    for width in (1280, 1920):
        await page.set_viewport_size(ViewportSize(width=width, height=800))
        for path in (dashboard, f"{dashboard}/operations", f"{dashboard}/branches/deleted",
                     "", "/users", "/requests", "/account/keys", "/organizations"):  # fmt: skip
            await page.goto(f"/console{path}")
            lines: list[tuple[str, int]] = await page.evaluate(LINES)
            assert lines, path
            long = [text for text, count in lines if count > (2 if "busy" in text else 1)]
            assert not long, f"{path} at {width} pixels"


async def test_state_of_a_branch_is_above_its_buttons_on_a_phone(
    page: Page, project: ProjectCreated
) -> None:
    await page.set_viewport_size(PHONE)
    await page.goto(f"/console/projects/{project.project.id}/branches/{project.branch.id}")
    state = await box(page.locator("#branch-state"))
    assert state["bottom"] <= (await box(page.locator("#branch-buttons")))["top"]


async def test_longest_name_is_complete_in_the_heading_on_a_phone(
    page: Page, neon: NeonClient
) -> None:
    created = await neon.projects.create(name="N" * 64, wait=True)
    branch = await neon.branches.create(created.project.id, name="x" * 256)
    await page.set_viewport_size(PHONE)
    for path in ("", f"/branches/{branch.branch.id}"):
        await page.goto(f"/console/projects/{created.project.id}{path}")
        heading = page.get_by_role("heading", level=1)
        assert await heading.evaluate(
            "(one) => [one, ...one.children].every((part) => part.scrollHeight <= part.clientHeight"
            " + 1 || getComputedStyle(part).overflowY === 'visible')"
        ), path
        sides = await page.evaluate("() => document.documentElement.scrollWidth")
        assert sides <= PHONE["width"], path


async def test_question_about_a_long_name_is_one_sentence(
    page: Page, neon: NeonClient, project: ProjectCreated
) -> None:
    branch = await neon.branches.find(project.project.id, LONG)
    await page.set_viewport_size(PHONE)
    await page.goto(f"/console/projects/{project.project.id}/branches/{branch.id}/delete")
    heading = page.get_by_role("heading", level=1)
    await expect(heading).to_have_text(f"Delete {LONG}?")
    last = await heading.evaluate(
        """one => {
            const end = document.createRange();
            end.selectNodeContents(one.lastChild);
            const name = [...one.querySelector("bdi").getClientRects()].at(-1);
            return end.getClientRects()[0].top - name.top;
        }"""
    )
    assert abs(last) < 2, "the question mark is below the name"


async def test_branch_without_compute_names_the_next_step_and_links_not_to_itself(
    page: Page, neon: NeonClient, project: ProjectCreated
) -> None:
    branch = await neon.branches.find(project.project.id, "bare")
    await page.goto(f"/console/projects/{project.project.id}/branches/{branch.id}")
    connect = page.get_by_role("region", name="Connect")
    await expect(connect).to_contain_text("The branch has no compute. Add one to connect.")
    await expect(connect.get_by_role("link")).to_have_count(0)


async def test_details_of_operations_are_below_each_name_on_a_screen(
    page: Page, project: ProjectCreated
) -> None:
    await page.goto(f"/console/projects/{project.project.id}/operations")
    summaries = page.locator("tbody summary")
    lefts = await summaries.evaluate_all("all => all.map(one => one.getBoundingClientRect().x)")
    assert len(lefts) > 2
    assert len(set(lefts)) == 1


async def test_quiet_buttons_end_with_their_column(page: Page, project: ProjectCreated) -> None:
    await page.goto(f"/console/projects/{project.project.id}/branches/{project.branch.id}")
    table = page.locator("#databases-table")
    ends = await table.evaluate(
        """table => [...table.querySelectorAll("thead th:last-child, tbody .button.danger")]
            .map((one) => {
                const text = document.createRange();
                text.selectNodeContents(one.firstChild);
                return text.getBoundingClientRect().right;
            })"""
    )
    assert max(ends) - min(ends) < 2


async def test_menus_are_beside_the_navigation_on_a_tablet(page: Page) -> None:
    await page.set_viewport_size(TABLET)
    navigation = await box(page.get_by_role("navigation", name="Console"))
    menus = await box(page.locator(".menus"))
    assert menus["top"] < navigation["bottom"]
    assert menus["left"] > navigation["right"]


@pytest.mark.usefixtures("project")
async def test_fields_and_buttons_of_a_filter_are_level(page: Page) -> None:
    await page.goto("/console")
    fields = page.get_by_role("search").locator("label, input, select, .button")
    boxes = await fields.evaluate_all(
        "all => all.map(one => [one.localName, one.getBoundingClientRect()])"
    )
    assert len(boxes) == 5
    tops = {round(place["top"], 1) for kind, place in boxes if kind == "label"}
    heights = {round(place["height"], 1) for kind, place in boxes if kind != "label"}
    assert len(tops) == len(heights) == 1
