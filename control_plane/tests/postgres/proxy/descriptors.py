"""File descriptors of the test process: how many are open, and what happens without any."""

import os
import resource
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path


def count_descriptors() -> int:
    """Return the number of open file descriptors."""
    return sum(1 for _ in Path("/dev/fd").iterdir())


@contextmanager
def few_descriptors() -> Generator[None]:
    """Limit the process to 40 further file descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(path.name) for path in Path("/dev/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 40, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def used_descriptors() -> Generator[list[int]]:
    """Use up the file descriptors of the process. Close one of the yielded ones to free it."""
    descriptors: list[int] = []
    with suppress(OSError):
        while True:
            descriptors.append(os.dup(0))
    try:
        yield descriptors
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
