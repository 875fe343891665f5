"""The lines that a rehearsal prints."""

from collections.abc import Mapping, Sequence

from tools.rehearsal.campaign import Result


def line(result: Result) -> str:
    """Return the line of one installation, and a line for each of its problems."""
    state = "failed" if result.problems else "ok"
    first = f"{result.seconds:6.1f} s  {state:6}  {result.installation.name}"
    return "\n".join([first, *(f"          {problem}" for problem in result.problems)])


def summary(results: Sequence[Result], seconds: float, downloads: Mapping[str, int]) -> str:
    """Return the last lines: how many installations worked, and what the index served."""
    failed = sum(1 for result in results if result.problems)
    versions = sorted({result.installation.version for result in results}, key=version_key)
    served = ", ".join(f"{name} {count} times" for name, count in sorted(downloads.items()))
    return (
        f"{len(results)} installations on CPython {', '.join(versions)} in {seconds:.0f} s: "
        f"{len(results) - failed} ok, {failed} failed\n"
        f"The index on loopback served: {served or 'nothing'}"
    )


def version_key(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, which sort 3.9 before 3.11."""
    return tuple(int(part) for part in version.split("."))


def is_success(results: Sequence[Result], downloads: Mapping[str, int]) -> bool:
    """Return whether every installation worked, and the index served what they contain."""
    kinds = {".tar.gz" if result.installation.from_sdist else ".whl" for result in results}
    served = {kind for kind in kinds for name in downloads if name.endswith(kind)}
    return bool(results) and kinds == served and not any(result.problems for result in results)
