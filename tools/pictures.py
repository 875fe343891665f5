"""Takes the pictures of docs/console.md in Chromium: ``make pictures``."""

import asyncio
import base64
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from playwright.async_api import Browser, Page, async_playwright

from neonctl_async import EndpointSpec, NeonClient
from neonctl_local import Durations, Fault, LocalControlPlane, ManualClock
from tools.chromium import ARGUMENTS, find_chromium

PICTURES: Final = Path(__file__).parents[1] / "docs" / "pictures" / "console"
DURATIONS: Final = Durations(
    default=0.6,
    by_action={"create_branch": 1.4, "start_compute": 0.8, "suspend_compute": 3600.0},
    scheduling=0.3,
)
COMPUTE: Final = [EndpointSpec(type="read_write")]
WIDE: Final = 1080
NARROW: Final = 390


class Picture(NamedTuple):
    """A page, and how it is shown. ``path`` contains names of ids."""

    path: str
    scheme: Literal["light", "dark"] = "light"
    width: int = WIDE
    height: int = 720


PICTURES_BY_NAME: Final[Mapping[str, Picture]] = {
    "dashboard": Picture("/projects/{project_id}", height=920),
    "dashboard-dark": Picture("/projects/{project_id}", "dark", NARROW, 800),
    "operations": Picture("/projects/{project_id}/operations"),
    "branch": Picture("/projects/{project_id}/branches/{branch_id}"),
    "keys": Picture("/organizations/{org_id}/keys", height=520),
    "requests": Picture("/requests"),
    "faults": Picture("/faults", "dark"),
}


class Sample:
    """The sample data: a shop, its previews, and the programs that use it."""

    def __init__(
        self, control_plane: LocalControlPlane, neon: NeonClient, clock: ManualClock
    ) -> None:
        self._control_plane = control_plane
        self._neon = neon
        self._clock = clock

    async def create(self) -> dict[str, str]:
        """Create the data. Return ids for the paths of pages."""
        neon, org_id = self._neon, self._control_plane.org_id
        shop = await neon.projects.create(name="shop", org_id=org_id)
        project_id = shop.project.id
        self._clock.advance(3 * 86_400)
        await neon.organizations.create_api_key(org_id, key_name="terraform")
        self._clock.advance(86_400)
        keys = [
            await neon.organizations.create_api_key(org_id, key_name=name, project_id=project_id)
            for name in ("ci", "nightly")
        ]
        branch_id = await self._create_branches(project_id, shop.branch.id)
        self._plan_faults()
        for key in keys:
            await self._use(key.key.reveal(), project_id)
        return {"project_id": project_id, "branch_id": branch_id, "org_id": org_id}

    async def _create_branches(self, project_id: str, root: str) -> str:
        """Create branches with operations in each status. Return the id of one."""
        neon = self._neon
        staging = await self._branch(project_id, "staging", root)
        await self._branch(project_id, "preview/pr-118", staging)
        self._clock.advance(7200)
        await self._control_plane.fail_next(
            "create_branch", error="the data of the parent could not be read", retry_after=900
        )
        await neon.branches.create(project_id, name="preview/pr-120", parent_id=staging)
        self._clock.advance(600)
        branch_id = await self._branch(project_id, "preview/pr-121", staging)
        await neon.databases.create(
            project_id, branch_id, name="analytics", owner_name="neondb_owner"
        )
        self._clock.advance(30)
        await neon.branches.create(
            project_id, name="preview/pr-122", parent_id=staging, endpoints=COMPUTE
        )
        self._clock.advance(0.9)
        return branch_id

    async def _branch(self, project_id: str, name: str, parent_id: str) -> str:
        created = await self._neon.branches.create(
            project_id, name=name, parent_id=parent_id, endpoints=COMPUTE
        )
        self._clock.advance(60)
        return created.branch.id

    def _plan_faults(self) -> None:
        """Plan faults of requests."""
        self._control_plane.inject(
            Fault(route="GET /projects/{project_id}", status=503, message="maintenance", times=3)
        )
        self._control_plane.inject(
            Fault(route="POST /projects/{project_id}/branches", delay=2.0, probability=0.1, seed=1)
        )

    async def _use(self, key: str, project_id: str) -> None:
        """Send requests with a key. Some of them meet a fault."""
        async with NeonClient(key, base_url=self._control_plane.base_url) as neon:
            await neon.projects.get(project_id)
            await neon.branches.list(project_id).collect()
            await neon.operations.list(project_id).collect()


async def main() -> None:
    """Take all pictures."""
    clock = ManualClock(datetime(2026, 3, 2, 9, 0, tzinfo=UTC))
    async with (
        LocalControlPlane(durations=DURATIONS, clock=clock, lock="none") as control_plane,
        NeonClient(control_plane.api_key, base_url=control_plane.base_url) as neon,
        async_playwright() as playwright,
    ):
        ids = await Sample(control_plane, neon, clock).create()
        browser = await playwright.chromium.launch(
            executable_path=find_chromium(), args=list(ARGUMENTS)
        )
        PICTURES.mkdir(parents=True, exist_ok=True)
        for name, picture in PICTURES_BY_NAME.items():
            content = await take(browser, control_plane, picture, ids)
            (PICTURES / f"{name}.webp").write_bytes(content)
        await browser.close()


async def take(
    browser: Browser, control_plane: LocalControlPlane, picture: Picture, ids: Mapping[str, str]
) -> bytes:
    """Return a picture as WebP."""
    context = await browser.new_context(
        base_url=control_plane.base_url.removesuffix("/api/v2"),
        color_scheme=picture.scheme,
        viewport={"width": picture.width, "height": picture.height},
        device_scale_factor=1.5,
        timezone_id="UTC",
        reduced_motion="reduce",
    )
    page = await context.new_page()
    await page.goto(control_plane.console_url)
    await page.wait_for_url("**/console")
    await page.goto(f"/console{picture.path.format_map(ids)}")
    content = await screenshot(page)
    await context.close()
    return content


async def screenshot(page: Page) -> bytes:
    """Return the visible part of a page as WebP, which Playwright itself does not offer."""
    session: Any = await page.context.new_cdp_session(page)  # Any: results of the debugger
    shot = await session.send("Page.captureScreenshot", {"format": "webp", "quality": 80})
    return base64.b64decode(shot["data"])


if __name__ == "__main__":
    asyncio.run(main())
