"""Names of roles and databases."""

import pytest

from control_plane.tests.client import Client, state_of
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


@pytest.mark.fact("roles-2", "roles-3", "roles-4", "roles-5", "roles-6", "roles-7", "roles-8")
@pytest.mark.fact("roles-9", "databases-1", "databases-2", "databases-3")
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("roles", {"role": {"name": "cloud_admin"}}),
        ("roles", {"role": {"name": "zenith_admin"}}),
        ("roles", {"role": {"name": "none"}}),
        ("roles", {"role": {"name": "neon_superuser"}}),
        ("roles", {"role": {"name": "pg_reader"}}),
        ("roles", {"role": {"name": "public"}}),
        ("roles", {"role": {"name": "\u00fc" * 32}}),
        ("databases", {"database": {"name": "postgres", "owner_name": "neondb_owner"}}),
        ("databases", {"database": {"name": "template0", "owner_name": "neondb_owner"}}),
        ("databases", {"database": {"name": "template1", "owner_name": "neondb_owner"}}),
        ("databases", {"database": {"name": "\u00fc" * 32, "owner_name": "neondb_owner"}}),
    ],
)
def test_name_that_postgres_cannot_have_is_refused(path: str, body: object) -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        assert plane.refused("POST", f"{project.main_path}/{path}", body).status == 422
        assert plane.works() == []
    with DrivenControlPlane(postgres=None) as plane:
        created = plane.request("POST", "/projects", {"project": {}})
        main = f"/projects/{created['project']['id']}/branches/{created['branch']['id']}"
        assert plane.refused("POST", f"{main}/{path}", body).status == 422


def test_name_of_the_first_role_and_of_a_renamed_database_is_checked_too() -> None:
    with DrivenControlPlane() as plane:
        project = DrivenProject(plane)
        renaming = {"database": {"name": "template0"}}
        path = f"{project.main_path}/databases/neondb"
        assert plane.refused("PATCH", path, renaming).status == 422
        spec = {"project": {"branch": {"role_name": "é" * 63}}}
        assert plane.refused("POST", "/projects", spec).status == 422


@pytest.mark.fact("roles-15", "databases-4")
@pytest.mark.parametrize("kind", ["role", "database"])
async def test_branch_has_at_most_500_roles_and_databases(
    api: Client, branch_path: str, kind: str
) -> None:
    state = state_of(api.control_plane)
    copy = {
        "role": "INSERT INTO roles SELECT NULL, branch_id, 'r' || ?, password_seed, no_login, "
        "protected, created_at, updated_at, deleted_at, verifier FROM roles LIMIT 1",
        "database": "INSERT INTO databases SELECT NULL, branch_id, 'd' || ?, owner_name, "
        "created_at, updated_at, deleted_at, former_names FROM databases LIMIT 1",
    }[kind]
    await state.database.run(lambda tx: [tx.execute(copy, number) for number in range(498)])
    path, owner = f"{branch_path}/{kind}s", {"owner_name": "neondb_owner"}
    body = owner if kind == "database" else {}
    await api.request("POST", path, {kind: {"name": "last", **body}})
    await api.expect_error(422, "500", "POST", path, {kind: {"name": "more", **body}})
