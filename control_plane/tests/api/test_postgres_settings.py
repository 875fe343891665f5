"""Settings of Postgres that requests choose."""

import re
from typing import Any

import msgspec
import pytest

from control_plane.tests.driven import POSTGRES, DrivenControlPlane, DrivenProject
from neonctl_local.engine import databases
from neonctl_local.postgres.settings import BOUNDS, SIZES_AND_TIMES
from neonctl_local.settings import PostgresRules
from neonctl_local.storage.tables import Endpoint, Project
from tests.support.pages import TEXTS

REFUSED = {
    "recovery_end_command": ("touch proof", "is not permitted: expected one that every session"),
    "Archive_Command": ("touch proof", "is not permitted"),
    "data_directory": ("/tmp", "is not permitted"),
    "local_preload_libraries": ("$libdir/plugins/x", "use preload_libraries instead"),
    "session_preload_libraries": ("pg_cron", "use preload_libraries instead"),
    "shared_preload_libraries": ("/tmp/x.so", "use preload_libraries instead"),
    "wal_level": ("minimal", "enable logical replication of the project instead"),
    "plperl.on_init": ("system 'touch proof'", "a name that starts with 'app.'"),
    "transaction_read_only": ("on", "is not permitted"),
    "transaction_timeout": ("1h", "set it with ALTER ROLE or ALTER DATABASE"),
    "a\nb": ("1", "is not the name of a Postgres setting"),
    "": ("1", "is not the name of a Postgres setting"),
    "work_mem": ("8MB'\nfsync = 'off", "expected printable characters"),
    "app.tenant": ("a\nb", "expected printable characters"),
}
"""Settings that no project may choose, with a value and a part of the reason."""


def ways_in(project: DrivenProject, settings: dict[str, Any]) -> dict[str, tuple[str, str, Any]]:
    """Return a request for each place of the API that has settings of Postgres."""
    reader = {"type": "read_only", "settings": settings}
    return {
        "new compute": (
            "POST",
            f"{project.path}/endpoints",
            {"endpoint": {"branch_id": project.main, **reader}},
        ),
        "compute": ("PATCH", project.endpoint_path, {"endpoint": {"settings": settings}}),
        "new branch": ("POST", f"{project.path}/branches", {"endpoints": [reader]}),
        "new project": ("POST", "/projects", {"project": {"default_endpoint_settings": settings}}),
        "project": ("PATCH", project.path, {"project": {"default_endpoint_settings": settings}}),
    }


@pytest.mark.parametrize("postgres", [POSTGRES, None])
def test_setting_that_is_not_permitted_is_refused_wherever_it_is_sent(
    postgres: PostgresRules | None,
) -> None:
    with DrivenControlPlane(postgres=postgres) as plane:
        project = DrivenProject(plane)
        for name, (value, reason) in REFUSED.items():
            requests = ways_in(project, {"pg_settings": {"jit": "off", name: value}})
            for way, (method, path, body) in requests.items():
                refused = plane.refused(method, path, body)
                assert refused.status == 400, way
                assert "settings.pg_settings: " in refused.message, way
                assert reason in refused.message, way
        plane.work_off()
        for way, (method, path, body) in ways_in(project, {"pg_settings": {"jit": "off"}}).items():
            assert plane.request(method, path, body), way
            plane.work_off()


def rows_of_page() -> tuple[list[list[str]], list[list[str]]]:
    """Return the rows of the two tables: the permitted settings, and the greatest values."""
    page = TEXTS["docs/local-databases.md"]
    section = page.partition("### Settings of Postgres")[2].partition("\n## ")[0]
    permitted, _, bounds = section.partition("\n| setting |")
    first, second = (
        [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| ")]
        for part in (permitted, bounds)
    )
    return first, second


def names_of(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def test_page_lists_the_sizes_and_times_that_a_project_may_choose() -> None:
    rows, _ = rows_of_page()
    listed = [name for row in rows[2:-1] for name in names_of(row[1])]
    assert sorted(listed) == sorted(SIZES_AND_TIMES.split())


def test_page_lists_the_greatest_values_of_sizes() -> None:
    _, rows = rows_of_page()
    listed = {name: re.sub("[ ,]", "", row[1]) for row in rows for name in names_of(row[0])}
    assert listed == {name: greatest for name, (_, greatest) in BOUNDS.items()}


def test_settings_of_an_imported_file_that_are_not_permitted_have_no_effect() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        refused = {name: value for name, (value, _) in REFUSED.items()}
        stored = msgspec.json.encode({"pg_settings": {**refused, "jit": "off"}}).decode()
        plane.run(lambda tx: tx.update(tx.get(Endpoint, project.endpoint), settings=stored))
        assert plane.run(databases.desired, project.main).settings == {"jit": "off"}
        plane.run(lambda tx: tx.update(tx.get(Endpoint, project.endpoint), settings="{}"))
        plane.run(
            lambda tx: tx.update(tx.get(Project, project.id), default_endpoint_settings=stored)
        )
        assert plane.run(databases.desired, project.main).settings == {"jit": "off"}


def test_setting_of_a_compute_replaces_that_of_the_project_in_any_case() -> None:
    with DrivenControlPlane() as plane:
        defaults = {"pg_settings": {"Work_Mem": "8MB"}}
        project = DrivenProject(plane, default_endpoint_settings=defaults)
        own = {"settings": {"pg_settings": {"WORK_MEM": "16MB"}}}
        plane.request("PATCH", project.endpoint_path, {"endpoint": own})
        assert plane.run(databases.desired, project.main).settings == {"work_mem": "16MB"}
