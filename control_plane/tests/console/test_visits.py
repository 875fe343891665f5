"""Visits to pages: their effect on projects, and that they are no requests of the API."""

from control_plane.tests.client import Client
from control_plane.tests.console.visitor import visiting
from neonctl_local import BackgroundIntervals, Fault, LocalControlPlane, ManualClock


async def test_page_neither_wakes_a_detached_project_nor_postpones_its_detachment() -> None:
    clock = ManualClock()
    intervals = BackgroundIntervals(detach_after=3600, suspend_after=60)
    async with (
        LocalControlPlane(clock=clock, intervals=intervals) as control_plane,
        Client(control_plane) as api,
        visiting(control_plane) as visitor,
    ):
        project_id = (await api.project())["project"]["id"]
        for _ in range(3):
            clock.advance(1300)
            page = await visitor.get(f"/projects/{project_id}")
            assert page.status == 200
        actions = await api.actions(project_id)
    assert actions[-2:] == ["tenant_detach", "tenant_reattach"]  # the API woke it, not the page


async def test_page_shows_background_work_that_is_due() -> None:
    clock = ManualClock()
    async with (
        LocalControlPlane(
            clock=clock, intervals=BackgroundIntervals(suspend_after=60)
        ) as control_plane,
        Client(control_plane) as api,
        visiting(control_plane) as visitor,
    ):
        project_id = (await api.project())["project"]["id"]
        clock.advance(10)
        assert "1 of 1 active" in (await visitor.get(f"/projects/{project_id}")).text
        clock.advance(100)
        assert "0 of 1 active" in (await visitor.get(f"/projects/{project_id}")).text


async def test_requests_for_pages_are_no_requests_of_the_api() -> None:
    async with LocalControlPlane(rate_limits=True) as control_plane:
        control_plane.inject(Fault(status=503))
        async with visiting(control_plane) as visitor:
            for _ in range(50):
                assert (await visitor.get("/projects/new")).status == 200
        assert list(control_plane.requests) == []
        assert control_plane.faults[0].fired == 0
