"""The memory that all requests share."""

import threading

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


def test_thread_cannot_reserve_memory_while_the_request_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    memory = Memory(LIMIT)
    reservation = Reservation(memory)
    reservation.add(1)
    lock = threading.Lock()

    class Contended:
        """A lock that another thread acquires as soon as it is released."""

        def __enter__(self) -> None:
            lock.acquire()

        def __exit__(self, *_: object) -> None:
            lock.release()
            monkeypatch.setattr(reservation, "_lock", lock)
            reservation.add(1)

    monkeypatch.setattr(reservation, "_lock", Contended())
    reservation.release()
    assert memory.used == 0
