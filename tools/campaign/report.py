"""The report of a campaign: its faults, the results of the calls that met them, its violations."""

import random
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from tools.campaign.outcomes import DELETED, Outcome

RESULTS = ("succeeded", "not executed", "maybe executed", "wait failed")


class Report:
    """The faults of a campaign and their effects."""

    def __init__(self) -> None:
        self.faults: Counter[str] = Counter()
        """How often each fault was injected."""
        self.violations: list[str] = []
        self.notes: Counter[str] = Counter()
        """What the clients did."""
        self.errors: Counter[str] = Counter()
        """The errors that a kill may cause."""
        self._calls = 0
        self._results: dict[str, Counter[str]] = {}

    def add_call(self, faults: Iterable[str], outcome: Outcome) -> None:
        """Add a call that met these faults."""
        self._calls += 1
        for fault in faults:
            self._results.setdefault(fault, Counter())[_result_of(outcome)] += 1

    def add_error(self, error: BaseException) -> None:
        """Count an error that a kill may cause."""
        self.errors[f"{type(error).__name__}: {str(error).splitlines()[:1]}"[:110]] += 1

    def lines(self) -> Iterator[str]:
        """Yield the number of each fault with the results of affected calls, and the rest."""
        yield f"{'fault':42}{'count':>8}{'calls':>8}" + "".join(
            f"{result:>17}" for result in RESULTS
        )
        for fault, count in sorted(self.faults.items()):
            of_fault = self._results.get(fault, Counter())
            figures = "".join(f"{of_fault[result]:>17}" for result in RESULTS)
            yield f"{fault:42}{count:>8}{of_fault.total():>8}{figures}"
        yield f"{'total':42}{self.faults.total():>8}{self._calls:>8}"
        yield from (
            f"{count} x {note}" for note, count in (self.notes + self.errors).most_common(25)
        )
        yield from self.violations[:20]
        yield f"{len(self.violations)} violations"


class Run(NamedTuple):
    """One run of a campaign, with one seed."""

    report: Report
    chance: random.Random
    directory: Path
    """An empty directory, which the account of Postgres can enter."""
    faults: int
    """The number of faults to inject."""
    pause: float
    """The mean time between two kills, in seconds."""
    names: Collection[str]
    """The faults of requests to inject."""


def _result_of(outcome: Outcome) -> str:
    """Return the column of an outcome in the table."""
    if outcome.error is None:
        return "succeeded"
    if outcome.id is not None and outcome.kind not in DELETED:
        return "wait failed"
    return "maybe executed" if outcome.maybe_executed else "not executed"
