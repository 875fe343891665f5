"""Names of roles and databases."""

from tests.local.client import Client


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
