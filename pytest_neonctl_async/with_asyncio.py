"""Clients for tests that pytest-asyncio runs: one fixture for each loop that it may run them on."""

from typing import TYPE_CHECKING, Final, Literal

import pytest_asyncio

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from neonctl_async import NeonClient
    from neonctl_async.testing.plugin.backends import Backend

_Scope = Literal["function", "class", "module", "package", "session"]


def _client_on_loop_of(scope: _Scope) -> object:
    async def client(_neon_backend: "Backend") -> "AsyncGenerator[NeonClient]":
        async with _neon_backend.client() as neon:
            yield neon

    return pytest_asyncio.fixture(loop_scope=scope, name=f"_neon_client_on_{scope}_loop")(client)


of_function: Final = _client_on_loop_of("function")
of_class: Final = _client_on_loop_of("class")
of_module: Final = _client_on_loop_of("module")
of_package: Final = _client_on_loop_of("package")
of_session: Final = _client_on_loop_of("session")
