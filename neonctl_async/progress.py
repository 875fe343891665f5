"""A progress display for waits. Needs ``neonctl-async[cli]``.

::

    with WaitProgress(neon) as progress:
        await neon.operations.wait(created, on_update=progress)
"""

import asyncio
import sys
from collections import Counter
from datetime import timedelta
from types import TracebackType
from typing import NamedTuple, Self, TextIO

try:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.live import Live
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text
except ImportError as _missing:
    raise ImportError(
        "neonctl_async.progress needs rich: pip install 'neonctl-async[cli]'"
    ) from _missing

from neonctl_async.client import NeonClient
from neonctl_async.clock import utc_now
from neonctl_async.models.operations import (
    UNSUCCESSFUL,
    Operation,
    OperationRef,
    OperationStatus,
)
from neonctl_async.waiting.tracked import SUCCEEDED, Outcome, outcome, supersedes

FRAME_SECONDS = 0.25
"""Seconds between two frames on a terminal."""
LINE_SECONDS = 5.0
"""Seconds between two lines if the output is not a terminal."""
MAX_PROJECTS = 20
"""The maximum number of projects shown at a time. A short screen shows fewer."""
MAX_FAILURES = 5
"""The maximum number of different failures shown at a time."""
MAX_FAILURE_LENGTH = 160
"""How many characters of a failure are shown; the operation's record contains the whole text."""
MAX_BAR_WIDTH = 40
"""The maximum number of columns of a bar. A bar never takes more than a quarter of the screen."""


class _ConsoleOnStderr(Console):
    """A console that becomes silent when its reader closes the pipe; rich would exit."""

    def on_broken_pipe(self) -> None:
        self.quiet = True


def console_on_stderr(*, no_color: bool | None = None) -> Console:
    """Return a rich console on stderr. FORCE_COLOR enables colours, but no live display."""
    console = _ConsoleOnStderr(stderr=True, no_color=no_color)
    console.is_interactive = console.is_interactive and console.file.isatty()
    return console


def _is_terminal(stream: TextIO | None) -> bool:
    """Return whether ``stream`` is a terminal. A closed stream may be None."""
    return stream is not None and stream.isatty()


class WaitProgress:
    """A progress display. Pass it as ``on_update``, or call it with each operation record.

    On a terminal it is a live display with a bar for each project. The display shows the number of
    operations by status, the failures, the elapsed time, and the requests that count against the
    rate budget. While the budget runs low, it also shows the factor by which polls are delayed, or
    when the next request can be sent. Without a terminal, it prints one line every 5 seconds, one
    at the end, and new failures at once. ``console`` is a rich console, by default on stderr.

    Enter it on the client's event loop. A timer on that loop redraws the display until exit. Any
    number of waits can share one display.
    """

    def __init__(self, neon: NeonClient, *, console: Console | None = None) -> None:
        self._neon = neon
        self._console = console or console_on_stderr()
        self._tally = _Tally()
        self._live: Live | None = None

    def __enter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._started = self._loop.time()
        if self._console.is_interactive:
            self._live = Live(
                self,
                console=self._console,
                auto_refresh=False,
                # Output to a file or a pipe must not be redirected to the terminal.
                redirect_stdout=_is_terminal(sys.stdout),
                redirect_stderr=_is_terminal(sys.stderr),
            )
            self._live.start(refresh=True)
        self._interval = LINE_SECONDS if self._live is None else FRAME_SECONDS
        self._timer = self._loop.call_later(self._interval, self._tick)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        if self._live is None:
            self._draw()
        else:
            self._live.stop()

    def __call__(self, operation: Operation) -> None:
        """Count a record of an operation."""
        failure = self._tally.note(operation)
        if failure is not None and self._live is None:
            self._print(failure.line())

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        # The failures come last, because a short screen cuts off the end.
        below = [self._summary(), *self._tally.by_status(), *self._tally.failures()]
        height_below = sum(len(line.wrap(console, width)) for line in below)
        rows = max(1, min(MAX_PROJECTS, console.height - height_below - 2))
        yield _bars(self._tally.projects, rows, min(MAX_BAR_WIDTH, width // 4))
        yield from below

    def _tick(self) -> None:
        self._draw()
        self._timer = self._loop.call_later(self._interval, self._tick)

    def _draw(self) -> None:
        if self._live is not None:
            self._live.refresh()
        elif self._tally.projects or self._neon.held_seconds >= 1:
            self._print(Text(": ").join([self._summary(), *self._tally.by_status()]))

    def _print(self, line: Text) -> None:
        self._console.print(line, soft_wrap=True)

    def _summary(self) -> Text:
        projects = self._tally.projects.values()
        done, total = sum(one.done for one in projects), sum(one.total for one in projects)
        elapsed = timedelta(seconds=int(self._loop.time() - self._started))
        spent, limit = self._neon.requests_last_minute, self._neon.budget.per_minute
        of_limit = "" if limit is None else f" of {limit}"
        stretch = self._neon.poll_stretch
        scarce = f", polls {stretch:.1f} times as far apart" if stretch > 1 else ""
        return Text(
            f"{done} of {total} operations done in {elapsed}, "
            f"{spent}{of_limit} requests in the last minute{scarce}{_held(self._neon.held_seconds)}"
        )


class _State(NamedTuple):
    """An operation as it was counted: its latest record, and its outcome at that time."""

    record: Operation
    outcome: Outcome


class _Project:
    """The number of operations of a project: in total, done, and unsuccessful."""

    def __init__(self) -> None:
        self.total = 0
        self.done = 0
        self.unsuccessful = 0

    def count(self, state: _State, by: int) -> None:
        """Add an operation in this state if ``by`` is 1, or remove it if ``by`` is -1."""
        self.total += by
        self.done += by * (state.outcome is not Outcome.PENDING)
        self.unsuccessful += by * (state.outcome is Outcome.UNSUCCESSFUL)


class _Failure:
    """Failures that share an error text: the first operation that failed, and how many did."""

    def __init__(self, first: Operation) -> None:
        self._first = first
        self.times = 0

    def line(self) -> Text:
        """Return the failure as one line."""
        first = self._first
        error = f": {first.error}" if first.error else ""
        line = f"{first.action} {first.status} in {first.project_id}{error}"
        if len(line) > MAX_FAILURE_LENGTH:
            line = f"{line[:MAX_FAILURE_LENGTH]}..."
        more = f" (and {self.times - 1} more)" if self.times > 1 else ""
        return Text(f"{_printable(line)}{more}", "red")


class _Tally:
    """The number of operations by project, status and failure."""

    def __init__(self) -> None:
        self.projects: dict[str, _Project] = {}
        self._failures: dict[str, _Failure] = {}
        self._states: dict[OperationRef, _State] = {}
        self._statuses: Counter[OperationStatus] = Counter()

    def note(self, operation: Operation) -> _Failure | None:
        """Count a record. Return its failure if it is the first with this error text."""
        before = self._states.get(operation.ref)
        if before is not None and not supersedes(operation, before.record):
            return None  # one wait may be behind another
        state = _State(operation, outcome(operation, utc_now()))
        self._states[operation.ref] = state
        project = self.projects.setdefault(operation.project_id, _Project())
        if before is not None:
            project.count(before, -1)
            self._statuses[before.record.status] -= 1
        project.count(state, 1)
        self._statuses[operation.status] += 1
        return self._note_failure(before, state)

    def _note_failure(self, before: _State | None, state: _State) -> _Failure | None:
        old = None if before is None else _error_text(before)
        new = _error_text(state)
        if new == old:
            return None
        if old is not None:  # Neon has run it again
            self._failures[old].times -= 1
            if not self._failures[old].times:
                del self._failures[old]
        if new is None:
            return None
        failure = self._failures.setdefault(new, _Failure(state.record))
        failure.times += 1
        return failure if failure.times == 1 else None

    def failures(self) -> list[Text]:
        """Return one line per error text, at most MAX_FAILURES, and one more line for the rest."""
        failures = list(self._failures.values())
        lines = [failure.line() for failure in failures[:MAX_FAILURES]]
        if (rest := len(failures) - MAX_FAILURES) > 0:
            lines.append(Text(f"and {_number(rest, 'more failure')}", "red"))
        return lines

    def by_status(self) -> list[Text]:
        """Return one line with the number of operations by status, or no line if there are none."""
        counts = [
            Text(f"{count} {_printable(status)}", _style(status))
            for status, count in self._statuses.items()
            if count
        ]
        return [Text(", ").join(counts)] if counts else []


def _error_text(state: _State) -> str | None:
    """Return the text of a failure, or None if the operation has not failed."""
    if state.outcome is not Outcome.UNSUCCESSFUL:
        return None
    return state.record.error or state.record.status


def _bars(projects: dict[str, _Project], rows: int, width: int) -> Table:
    """Return a row per project. If not all fit, unfinished and then failed projects come first."""
    order = list(projects.items())
    if len(order) > rows:
        order.sort(key=lambda item: (item[1].done == item[1].total, not item[1].unsuccessful))
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True, overflow="ellipsis")
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, justify="right")
    table.add_column(no_wrap=True, style="red")
    for id, project in order[:rows]:
        colour = "red" if project.unsuccessful else "green"
        bar = ProgressBar(
            project.total, project.done, width=width, complete_style=colour, finished_style=colour
        )
        failed = f"{project.unsuccessful} failed" if project.unsuccessful else ""
        table.add_row(Text(id), bar, f"{project.done} of {project.total}", failed)
    if len(order) > rows:
        table.add_row(f"and {_number(len(order) - rows, 'more project')}", style="dim")
    return table


def _held(seconds: float) -> str:
    return (
        f", the next request in {seconds:.0f} s because of the rate limit" if seconds >= 1 else ""
    )


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _style(status: OperationStatus) -> str:
    if status in SUCCEEDED:
        return "green"
    return "red" if status in UNSUCCESSFUL else "yellow"


def _printable(text: str) -> str:
    """Return text from the API as one line without terminal control characters."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
