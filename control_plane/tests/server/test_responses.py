"""Requests on a data file, whose reads run beside its writes."""

import asyncio
from pathlib import Path

from control_plane.tests.client import serve
from control_plane.tests.keys import organization_key
from neonctl_local import BackgroundIntervals, ManualClock


async def test_read_does_the_background_work_that_is_due(tmp_path: Path) -> None:
    clock = ManualClock()
    intervals = BackgroundIntervals(detach_after=86400)
    async with serve(data=tmp_path / "data.db", clock=clock, intervals=intervals) as api:
        project_id = (await api.project())["project"]["id"]
        clock.advance(3600)
        assert (await api.actions(project_id))[-1] == "suspend_compute"
        clock.advance(80000)
        await api.actions(project_id)
        clock.advance(80000)
        assert "tenant_detach" not in await api.actions(project_id), "the last read counts"
        clock.advance(90000)
        assert (await api.actions(project_id))[-2:] == ["tenant_detach", "tenant_reattach"]


async def test_revocation_is_immediate_for_reads_beside_the_writer(tmp_path: Path) -> None:
    async with serve(data=tmp_path / "data.db") as api:
        for _ in range(20):
            key_id, key = await organization_key(api)
            reads = [api.send("GET", "/projects", key=key) for _ in range(5)]
            assert {reply.status for reply in await asyncio.gather(*reads)} == {200}
            reads = [api.send("GET", "/api_keys", key=key) for _ in range(3)]
            reads += [api.send("GET", "/projects", key=key) for _ in range(3)]
            running = [asyncio.ensure_future(read) for read in reads]
            await api.request("DELETE", f"{api.organization_path}/api_keys/{key_id}")
            assert (await api.send("GET", "/projects", key=key)).status == 401
            assert {reply.status for reply in await asyncio.gather(*running)} <= {200, 401, 403}


async def test_every_client_reads_what_it_has_written(tmp_path: Path) -> None:
    async with serve(data=tmp_path / "data.db") as api:
        project_id = (await api.project())["project"]["id"]

        async def write_and_read(client: int) -> None:
            for number in range(5):
                name = f"{client}-{number}"
                branch = (await api.branch(project_id, name=name))["branch"]
                path = f"/projects/{project_id}/branches/{branch['id']}"
                assert (await api.get(path))["branch"]["name"] == name
                assert name in await api.branch_names(project_id)
                await api.request("DELETE", path)
                assert (await api.send("GET", path)).status == 404
                assert name not in await api.branch_names(project_id)

        await asyncio.gather(*(write_and_read(client) for client in range(6)))


async def test_list_of_keys_shows_uses_that_are_not_stored_yet(tmp_path: Path) -> None:
    clock = ManualClock()
    async with serve(data=tmp_path / "data.db", clock=clock) as api:
        _, key = await organization_key(api)
        for _ in range(3):
            clock.advance(60)
            await api.get("/projects", key=key)
            (own,) = await api.get("/api_keys")
            (other,) = await api.get(f"{api.organization_path}/api_keys")
            now = clock().strftime("%Y-%m-%dT%H:%M:%SZ")
            assert (own["last_used_at"], other["last_used_at"]) == (now, now)
            assert other["last_used_from_addr"] == "127.0.0.1"
