"""Small scripts in the place of Postgres programs."""

from pathlib import Path

VERSION = 'echo "postgres (PostgreSQL) {}"'


def write_script(path: Path, body: str) -> Path:
    """Write a shell script that every account can run."""
    for parent in reversed(path.parents):
        if not parent.exists():
            parent.mkdir()
            parent.chmod(0o755)
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def write_installation(directory: Path, version: str = "", *, postgres: str = "") -> Path:
    """Write the programs that an installation must have, with a version or a script."""
    write_script(directory / "postgres", postgres or VERSION.format(version))
    for name in ("initdb", "pg_dump"):
        write_script(directory / name, "exit 1")
    return directory
