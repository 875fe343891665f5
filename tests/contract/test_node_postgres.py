"""node-postgres connects to a branch of the local control plane."""

from pathlib import Path

import pytest

from control_plane.tests.postgres.drivers import (
    assert_parent_and_branch_differ,
    client_of_databases,
)
from neonctl_async import ConnectionUri
from tests.contract.node import NODE_POSTGRES, copy_programs, run

pytestmark = pytest.mark.contract


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """The folder of the program that uses node-postgres."""
    copy_programs(NODE_POSTGRES, tmp_path)
    return tmp_path


@pytest.mark.parametrize("tls", [False, True])
async def test_node_postgres_sees_that_parent_and_branch_differ(
    programs: Path, *, tls: bool
) -> None:
    async def execute(uri: ConnectionUri, statement: str) -> object:
        result: object = await run(programs, "query.mjs", uri.reveal(), statement)
        return result

    async with client_of_databases(tls=tls) as neon:
        await assert_parent_and_branch_differ(neon, {"node-postgres": execute})
