"""Fills a disk."""

from pathlib import Path


def fill_disk(file: Path) -> None:
    """Write to a file until its disk is full to the last byte."""
    try:
        with file.open("ab", buffering=0) as filling:
            for size in (1 << 20, 1 << 12, 1):
                try:
                    while True:
                        filling.write(bytes(size))
                except OSError:
                    continue
    except OSError:
        pass  # closing an unbuffered file writes nothing
