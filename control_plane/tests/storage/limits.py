"""A limit on the size of files, which has the effect of a full disk."""

import sys
from collections.abc import Generator
from contextlib import contextmanager

if sys.platform != "win32":
    import resource


@contextmanager
def largest_file(size: int) -> Generator[None]:
    """Let no file of this process grow beyond a size, as on a full disk."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
