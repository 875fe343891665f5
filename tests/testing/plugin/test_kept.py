"""A worker keeps a limited number of databases of failed tests."""

import pytest

from neonctl_async import NeonClient
from neonctl_async.testing.plugin import kept
from neonctl_async.testing.plugin.control_plane import TenantClient


async def test_number_of_kept_databases_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "LIMIT", 0)
    async with NeonClient("any-key") as neon:
        databases = kept.KeptDatabases(neon, NeonClient)
        with pytest.raises(RuntimeError, match="0 databases are kept already"):
            await databases.keep(TenantClient(neon, 0), "br-1")
