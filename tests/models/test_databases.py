from neonctl_async.types import Database
from tests.models.answers import AT_NOON, DATABASE, decode


def test_a_database_and_its_owner() -> None:
    database = decode(Database, DATABASE)
    assert (database.id, database.branch_id, database.name) == (1, "br-1", "neondb")
    assert database.owner_name == "owner"
    assert database.created_at == database.updated_at == AT_NOON
