"""The libraries that Postgres can preload."""

from control_plane.tests.client import Client


async def test_default_and_optional_libraries_are_listed(api: Client, project_id: str) -> None:
    listed = await api.get(f"/projects/{project_id}/available_preload_libraries")
    libraries = {library["library_name"]: library for library in listed["libraries"]}
    assert libraries["pg_stat_statements"]["is_default"]
    assert not libraries["timescaledb"]["is_default"]
    missing = await api.send("GET", "/projects/none/available_preload_libraries")
    assert missing.status == 404
