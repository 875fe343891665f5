"""The installations of a rehearsal, as data."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

PACKAGE = "neonctl-async"


@dataclass(frozen=True)
class Installation:
    """One installation: the installer, the CPython, the extras, and the archive."""

    installer: str
    version: str
    extras: tuple[str, ...] = ()
    from_sdist: bool = False

    @property
    def requirement(self) -> str:
        """The requirement that the installer receives."""
        return f"{PACKAGE}[{','.join(self.extras)}]" if self.extras else PACKAGE

    @property
    def name(self) -> str:
        """The words that a report shows."""
        archive = " from the sdist" if self.from_sdist else ""
        return f"{self.version} {self.installer} {self.requirement}{archive}"


def combinations(extras: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Yield no extra, each extra, and all extras."""
    names = tuple(extras)
    yield ()
    for name in names:
        yield (name,)
    if len(names) > 1:
        yield names


def installations(
    versions: Sequence[str], extras: Mapping[str, object], only: str = ""
) -> list[Installation]:
    """Return all installations whose name contains a text."""
    planned = [
        installation
        for version in versions
        for installation in (
            *(
                Installation(installer, version, chosen)
                for installer in ("pip", "uv", "pipx")
                for chosen in combinations(extras)
            ),
            Installation("pip", version, from_sdist=True),
            Installation("uv", version, from_sdist=True),
        )
    ]
    return [installation for installation in planned if only in installation.name]
