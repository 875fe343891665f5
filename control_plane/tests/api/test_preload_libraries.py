"""The libraries that Postgres can preload."""

import msgspec
import pytest

from control_plane.tests.client import Client
from control_plane.tests.driven import POSTGRES, DrivenControlPlane, DrivenProject
from neonctl_local.engine import databases
from neonctl_local.postgres.settings import LIBRARIES


async def test_default_and_optional_libraries_are_listed(api: Client, project_id: str) -> None:
    listed = await api.get(f"/projects/{project_id}/available_preload_libraries")
    libraries = {library["library_name"]: library for library in listed["libraries"]}
    assert libraries["pg_stat_statements"]["is_default"]
    assert not libraries["timescaledb"]["is_default"]
    missing = await api.send("GET", "/projects/none/available_preload_libraries")
    assert missing.status == 404


def test_servers_load_the_libraries_of_the_compute_or_else_of_the_project() -> None:
    rules = msgspec.structs.replace(POSTGRES, libraries={18: frozenset(LIBRARIES[:2])})
    with DrivenControlPlane(postgres=rules) as plane:
        project = DrivenProject(plane)

        def loaded() -> str | None:
            settings = plane.run(databases.desired, project.main).settings
            return settings.get("shared_preload_libraries")

        def choose(path: str, kind: str, **settings: object) -> None:
            plane.request("PATCH", path, {kind: {"settings": settings}})

        assert loaded() == "pg_stat_statements"
        choose(project.path, "project", preload_libraries={"use_defaults": False})
        assert loaded() is None
        libraries = {"enabled_libraries": ["timescaledb"]}
        choose(project.endpoint_path, "endpoint", preload_libraries=libraries)
        assert loaded() == "timescaledb"


@pytest.mark.parametrize("kind", ["project", "endpoint"])
def test_library_that_is_not_installed_is_refused(kind: str) -> None:
    rules = msgspec.structs.replace(POSTGRES, libraries={18: frozenset({"pg_cron"})})
    with DrivenControlPlane(postgres=rules) as plane:
        project = DrivenProject(plane)
        listed = plane.request("GET", f"{project.path}/available_preload_libraries")
        assert [library["library_name"] for library in listed["libraries"]] == ["pg_cron"]
        path = project.path if kind == "project" else project.endpoint_path
        libraries = {"enabled_libraries": ["/tmp/library"]}
        body = {kind: {"settings": {"preload_libraries": libraries}}}
        refused = plane.refused("PATCH", path, body)
        assert refused.status == 400
        assert refused.message.endswith("is not available for Postgres 18: expected pg_cron")
