"""Clients for pytest-asyncio tests: one fixture for each event loop scope."""

from typing import TYPE_CHECKING, Final, Literal

import pytest_asyncio

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from neonctl_async import NeonClient
    from pytest_neonctl_async.backend import Backend

_Scope = Literal["function", "class", "module", "package", "session"]


def _client_fixture(scope: _Scope) -> object:
    async def client(_neon_backend: "Backend") -> "AsyncGenerator[NeonClient]":
        async with _neon_backend.new_client() as neon:
            yield neon

    return pytest_asyncio.fixture(loop_scope=scope, name=f"_neon_client_on_{scope}_loop")(client)


function_client: Final = _client_fixture("function")
class_client: Final = _client_fixture("class")
module_client: Final = _client_fixture("module")
package_client: Final = _client_fixture("package")
session_client: Final = _client_fixture("session")
