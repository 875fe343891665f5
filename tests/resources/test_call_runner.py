from typing import cast

import pytest

from neonctl_async import ClientClosedError, NeonClient
from neonctl_async.resources.base import CallRunner
from neonctl_async.transport.calls import Deadline
from neonctl_async.types import Endpoint
from tests.models.records import ENDPOINT, decode
from tests.support.records import API_KEY


async def test_wait_for_connections_after_the_client_is_closed_ends_at_once() -> None:
    async with NeonClient(API_KEY) as neon:
        runner = cast("CallRunner", vars(neon)["_runner"])
    compute = decode(Endpoint, ENDPOINT)
    with pytest.raises(ClientClosedError):
        await runner.connector.connect_to(compute, Deadline(None))
