"""Names of roles and databases."""

import pytest

from control_plane.tests.client import Client
from control_plane.tests.driven import DrivenControlPlane, DrivenProject


async def test_role_and_database_names_are_unique_in_a_branch(
    api: Client, branch_path: str
) -> None:
    role = {"role": {"name": "neondb_owner"}}
    database = {"database": {"name": "neondb", "owner_name": "neondb_owner"}}
    assert (await api.send("POST", f"{branch_path}/roles", role)).status == 409
    assert (await api.send("POST", f"{branch_path}/databases", database)).status == 409
    await api.add_database(branch_path, "other")
    renamed = {"database": {"name": "neondb"}}
    assert (await api.send("PATCH", f"{branch_path}/databases/other", renamed)).status == 409


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("roles", {"role": {"name": "cloud_admin"}}),
        ("roles", {"role": {"name": "neon_superuser"}}),
        ("roles", {"role": {"name": "pg_reader"}}),
        ("roles", {"role": {"name": "public"}}),
        ("roles", {"role": {"name": "\u00fc" * 32}}),
        ("databases", {"database": {"name": "postgres", "owner_name": "neondb_owner"}}),
        ("databases", {"database": {"name": "template1", "owner_name": "neondb_owner"}}),
        ("databases", {"database": {"name": "\u00fc" * 32, "owner_name": "neondb_owner"}}),
    ],
)
def test_name_that_postgres_cannot_have_is_refused(path: str, body: object) -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        assert plane.refused("POST", f"{project.main_path}/{path}", body).status == 422
        assert plane.works() == []


def test_name_of_the_first_role_and_of_a_renamed_database_is_checked_too() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        renaming = {"database": {"name": "template0"}}
        path = f"{project.main_path}/databases/neondb"
        assert plane.refused("PATCH", path, renaming).status == 422
        spec = {"project": {"branch": {"role_name": "é" * 63}}}
        assert plane.refused("POST", "/projects", spec).status == 422


def test_emulated_databases_have_any_name() -> None:
    with DrivenControlPlane(postgres=None) as plane:
        created = plane.request("POST", "/projects", {"project": {}})
        path = f"/projects/{created['project']['id']}/branches/{created['branch']['id']}"
        role = plane.request("POST", f"{path}/roles", {"role": {"name": "cloud_admin"}})
        assert role["role"]["name"] == "cloud_admin"
