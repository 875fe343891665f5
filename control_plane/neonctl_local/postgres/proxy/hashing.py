"""Threads that hash passwords, so that one compute's logins do not delay other work."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from neonctl_local.postgres.servers.scheduling import in_thread

T = TypeVar("T")

_THREADS: Final = ThreadPoolExecutor(4, "neonctl-passwords")
_locks: Final[WeakValueDictionary[object, asyncio.Lock]] = WeakValueDictionary()


async def hash_for(compute: object, function: Callable[..., T], *args: object) -> T:
    """Run a function that hashes a password. Calls with the same ``compute`` run one at a time.

    A cancellation is raised after the function has returned, so until then, even a cancelled call
    delays the others. ``compute`` is any value that identifies the compute in this process, such as
    the path of its socket.
    """
    key = asyncio.get_running_loop(), compute
    async with _locks.setdefault(key, asyncio.Lock()):
        return await in_thread(function, *args, executor=_THREADS)
