"""The report of a campaign: its faults, the results of the calls that met them, its violations."""

from collections import Counter
from collections.abc import Iterable, Iterator

from neonctl_async import NeonError
from tools.faults.callers import Outcome

RESULTS = ("succeeded", "not executed", "maybe executed", "wait failed")


class Report:
    """The faults of a campaign and their effects."""

    def __init__(self) -> None:
        self.faults: Counter[str] = Counter()
        """How often each fault was injected."""
        self.violations: list[str] = []
        self._calls = 0
        self._results: dict[str, Counter[str]] = {}

    def add_call(self, faults: Iterable[str], outcome: Outcome) -> None:
        """Add a call that met these faults."""
        self._calls += 1
        for fault in faults:
            self._results.setdefault(fault, Counter())[_result_of(outcome)] += 1

    def add_call_that_may_not_fail(self, fault: str, outcome: Outcome) -> None:
        """Add a call that met one fault, of which its caller must not notice more than a delay."""
        self.add_call([fault], outcome)
        call = f"{fault}: {outcome.kind} {outcome.name}"
        if outcome.error is not None:
            self.violations.append(
                f"{call} failed after {outcome.loop_seconds:.1f} s: {outcome.error!r}"
            )
        if outcome.rejected:
            self.violations.append(f"{call} got status 429 {outcome.rejected} times")

    def table(self) -> Iterator[str]:
        """Yield a line per fault: how often it was injected, and the results of affected calls."""
        yield f"{'fault':42}{'count':>8}{'calls':>8}" + "".join(
            f"{result:>17}" for result in RESULTS
        )
        for fault, count in sorted(self.faults.items()):
            of_fault = self._results.get(fault, Counter())
            figures = "".join(f"{of_fault[result]:>17}" for result in RESULTS)
            yield f"{fault:42}{count:>8}{of_fault.total():>8}{figures}"
        yield f"{'total':42}{self.faults.total():>8}{self._calls:>8}"


def _result_of(outcome: Outcome) -> str:
    """Return the column of an outcome in the table."""
    if outcome.error is None:
        return "succeeded"
    if outcome.id is not None and outcome.kind != "revoked key":
        return "wait failed"
    is_open = isinstance(outcome.error, NeonError) and outcome.error.maybe_delivered
    return "maybe executed" if is_open else "not executed"
