"""Threads that hash passwords."""

import asyncio
import threading

from neonctl_local.postgres.proxy.hashing import hash_for


async def test_one_compute_uses_one_thread_even_if_its_clients_give_up() -> None:
    gate = threading.Event()
    started: list[str] = []

    def hash_slowly() -> None:
        started.append("slow")
        gate.wait()

    slow = [asyncio.create_task(hash_for("attacker", hash_slowly)) for _ in range(20)]
    try:
        await asyncio.sleep(0.05)
        slow[0].cancel()
        assert await asyncio.wait_for(hash_for("other", len, "abc"), 5) == 3
        assert started == ["slow"]
        assert not slow[0].done()
    finally:
        gate.set()
        results = await asyncio.gather(*slow, return_exceptions=True)
    assert isinstance(results[0], asyncio.CancelledError)
    assert results[1:] == [None] * 19
