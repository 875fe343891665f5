"""A load: the branches that are created, when, and how long their operations take."""

from collections.abc import Sequence

import msgspec

from benchmarks.servers.control_plane import Settings

Stages = tuple[tuple[float, ...], ...]
"""The seconds of the operations of a branch: one stage after another, all of one together."""


class Branch(msgspec.Struct, frozen=True):
    """A branch that is created ``arrives`` seconds after the start, and awaited."""

    name: str
    project_id: str
    arrives: float
    stages: Stages
    timeout: float | None = None
    """The timeout of the wait, in seconds; None for a long one."""

    @property
    def seconds(self) -> float:
        """The time from the creation to the end of the last operation."""
        return sum(max(stage) for stage in self.stages)


class Load(msgspec.Struct, frozen=True, kw_only=True):
    """A load on an account of ``per_minute`` requests."""

    name: str
    branches: tuple[Branch, ...]
    settings: Settings
    is_one_wait: bool = False
    """True if the operations run already, and one call waits for all of them."""
    max_delay: float = 3.0
    """The longest time from the end of the last operation to the end of the last wait."""
    max_requests: int | None = None
    """The largest number of requests; None derives it from the oracle."""

    @property
    def projects(self) -> list[str]:
        """The projects, each once."""
        return list(dict.fromkeys(branch.project_id for branch in self.branches))

    @property
    def serial_ends(self) -> dict[str, float]:
        """When each project has finished its branches, if it works on one at a time.

        The order of branches that wait at the same time does not matter.
        """
        ends: dict[str, float] = {}
        for branch in sorted(self.branches, key=lambda one: one.arrives):
            since = max(branch.arrives, ends.get(branch.project_id, 0.0))
            ends[branch.project_id] = since + branch.seconds
        return ends

    @property
    def per_minute(self) -> int:
        """The rate limit of the account."""
        assert self.settings.per_minute is not None
        return self.settings.per_minute

    @property
    def available(self) -> int:
        """The requests a minute that another client of the account leaves."""
        return self.per_minute - int(self.settings.others_per_second * 60.0)


def branch_name(number: int, stages: Stages) -> str:
    """Return the name from which the simulator reads the durations."""
    return f"b{number} {words_of(stages)}"


def words_of(stages: Stages) -> str:
    """Return the durations as the simulator reads them."""
    return " ".join("+".join(map(repr, stage)) for stage in stages)


def in_order(count: int, projects: int, *, is_interleaved: bool) -> Sequence[str]:
    """Return the project of each branch: project by project, or one of each, repeatedly."""
    if is_interleaved:
        return [f"p{n % projects}" for n in range(count)]
    return [f"p{n * projects // count}" for n in range(count)]
