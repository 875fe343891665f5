import msgspec

from neonctl_async.types import BranchSchema, MaskingRule
from tests.models.records import MASKING_RULE, REFERENCED_TABLE, decode


def test_schema_decodes_nested_records() -> None:
    foreign_key = {"type": "foreign_key", "columns": ["id"], "referenced_table": REFERENCED_TABLE}
    columns = [{"name": "id", "type": "bigint", "nullable": False}]
    table = {"schema": "public", "name": "orders", "columns": columns, "constraints": [foreign_key]}
    schema = decode(BranchSchema, {"json": {"tables": [table]}}).json
    assert schema is not None
    assert schema.tables[0].columns[0].nullable is False
    [constraint] = schema.tables[0].constraints
    assert constraint.referenced_table is not None
    assert constraint.referenced_table.table == "users"


def test_unset_masking_function_and_value_are_not_sent() -> None:
    assert msgspec.to_builtins(decode(MaskingRule, MASKING_RULE)) == MASKING_RULE
