"""Opens the account that a client's settings select."""

from typing import TYPE_CHECKING

from neonctl_async.config import Config
from neonctl_async.errors import ConfigurationError
from neonctl_async.transport.account import Account, LocalAccount
from neonctl_async.transport.calls import GRACE_SECONDS

if TYPE_CHECKING:
    from neonctl_async.transport.shared.messages import Store

OVERRUN_SECONDS = 2 * GRACE_SECONDS
"""The time by which a request may exceed its timeout: the grace period after the event loop was
blocked, and as much again, because the loop may also notice the end of the grace period late.
"""


def open_account(config: Config) -> Account:
    """Return the account of a client: its own, or a shared one."""
    if config.budget.store is None:
        return LocalAccount(config.budget)
    from neonctl_async.transport.shared.account import SharedAccount  # noqa: PLC0415 - few clients share a budget

    return SharedAccount(
        config.budget,
        _open_store(config),
        longest_request=config.timeout.total + OVERRUN_SECONDS,
        fallback_parts=config.budget.store.fallback_parts,
    )


def _open_store(config: Config) -> "Store":
    store = config.budget.store
    assert store is not None
    account = store.account_id(config.api_key, config.base_url)
    if not store.is_redis:
        from neonctl_async.transport.shared.sqlite_store import (  # noqa: PLC0415 - imports sqlite3, which few need
            SqliteStore,
        )

        return SqliteStore(store.path, account)
    from neonctl_async.transport.shared.redis_store import RedisStore  # noqa: PLC0415 - redis-py is optional

    try:
        return RedisStore(store.url, store.name, account)
    except (TypeError, ValueError):
        raise ConfigurationError(
            f"the URL of the shared rate budget {store.name} has a wrong option: expected options "
            "of redis.asyncio.Redis.from_url"
        ) from None
