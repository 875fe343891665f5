"""The memory that all requests share."""

import pytest

from neonctl_local.server.memory import Memory, MemoryFullError, Reservation

LIMIT = 512 << 20


def test_request_that_does_not_fit_is_refused_until_another_one_ends() -> None:
    memory = Memory(LIMIT)
    first, second = Reservation(memory), Reservation(memory)
    first.add(LIMIT)
    with pytest.raises(MemoryFullError, match="more than the 512 MiB"):
        second.add(1)
    first.release()
    second.add(LIMIT)
    assert memory.used == LIMIT
