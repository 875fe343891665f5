from neonctl_async.types import ConnectionDetails, Database
from tests.models.records import AT_NOON, CONNECTION, DATABASE, decode


def test_database_decodes_with_its_owner() -> None:
    database = decode(Database, DATABASE)
    assert (database.id, database.branch_id, database.name) == (1, "br-1", "neondb")
    assert database.owner_name == "owner"
    assert database.created_at == database.updated_at == AT_NOON


def test_other_connection_parameters_are_visible() -> None:
    parameters = decode(ConnectionDetails, CONNECTION).connection_parameters
    assert (parameters.database, parameters.role) == ("neondb", "owner")
    assert (parameters.host, parameters.pooler_host) == ("ep-1.example.com", None)
