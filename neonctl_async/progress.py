"""A wait before one's eyes: needs ``neonctl-async[cli]``.

::

    with WaitProgress(neon) as progress:
        await neon.operations.wait(created, on_update=progress)
"""

import asyncio
import sys
from collections import Counter
from datetime import datetime, timedelta
from itertools import islice
from types import TracebackType
from typing import NamedTuple, Self

try:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.live import Live
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text
except ImportError as _missing:
    raise ImportError("progress needs rich: install neonctl-async[cli]") from _missing

from neonctl_async.client import NeonClient
from neonctl_async.clock import utc_now
from neonctl_async.models.operations import Operation, OperationRef, OperationStatus
from neonctl_async.waiting.status import SUCCEEDED, UNSUCCESSFUL, Outcome, outcome

FRAME_EVERY = 0.25
"""Seconds between two frames on a terminal."""
LINE_EVERY = 5.0
"""Seconds between two lines where there is no terminal."""
MOST_PROJECTS = 20
"""How many projects are shown at once, where the screen is high enough."""
MOST_FAILURES = 5
"""How many different failures are shown at once."""
LONGEST_FAILURE = 160
"""In characters; the operation's record has the whole text."""
WIDEST_BAR = 40
"""In columns; a quarter of the screen where that is less."""


class _ConsoleOnStderr(Console):
    """Does not end the process where nobody reads what it writes."""

    def on_broken_pipe(self) -> None:
        self.quiet = True


def console_on_stderr(*, no_color: bool | None = None) -> Console:
    """Rich's on stderr, live on a terminal alone: FORCE_COLOR asks for colours, not for frames."""
    console = _ConsoleOnStderr(stderr=True, no_color=no_color)
    console.is_interactive = console.is_interactive and console.file.isatty()
    return console


class WaitProgress:
    """Shows how far operations are: call it with each record, as ``on_update`` does.

    On a terminal a live display: a bar for each project, how many operations have each status,
    what failed, the time, and the requests that count against the budget. Elsewhere a line every
    5 seconds, and one at the end. ``console`` is rich's, on stderr unless given.

    Enter it on the loop of the client: its timer is what draws, until it is left. Many waits may
    feed one.
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
                # What goes to a file or a pipe goes there, live display or not.
                redirect_stdout=sys.stdout.isatty(),
                redirect_stderr=sys.stderr.isatty(),
            )
            self._live.start(refresh=True)
        self._every = LINE_EVERY if self._live is None else FRAME_EVERY
        self._timer = self._loop.call_later(self._every, self._tick)
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
        """Count what a record tells of its operation."""
        failure = self._tally.note(operation)
        if failure is not None and self._live is None:
            self._print(failure.line())

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width
        # The failures come last: where the screen is too low for all of it, the end is cut.
        below = [self._summary(), *self._tally.by_status(), *self._tally.failed()]
        taken = sum(len(line.wrap(console, width)) for line in below)
        room = max(1, min(MOST_PROJECTS, console.height - taken - 2))
        yield _bars(self._tally.projects, room, min(WIDEST_BAR, width // 4))
        yield from below

    def _tick(self) -> None:
        self._draw()
        self._timer = self._loop.call_later(self._every, self._tick)

    def _draw(self) -> None:
        if self._live is not None:
            self._live.refresh()
        elif self._tally.projects:
            self._print(Text(": ").join([self._summary(), *self._tally.by_status()]))

    def _print(self, line: Text) -> None:
        self._console.print(line, soft_wrap=True)

    def _summary(self) -> Text:
        projects = self._tally.projects.values()
        ended, seen = sum(one.ended for one in projects), sum(one.seen for one in projects)
        elapsed = timedelta(seconds=int(self._loop.time() - self._started))
        spent, limit = self._neon.requests_last_minute, self._neon.budget.per_minute
        of_limit = "" if limit is None else f" of {limit}"
        return Text(
            f"{ended} of {seen} operations ended after {elapsed}, "
            f"with {spent}{of_limit} requests this minute"
        )


class _Seen(NamedTuple):
    """What was last seen of an operation."""

    status: OperationStatus
    updated_at: datetime
    outcome: Outcome


class _Project:
    """The operations of a project, in numbers."""

    def __init__(self) -> None:
        self.seen = 0
        self.ended = 0
        self.unsuccessful = 0

    def count(self, seen: _Seen, by: int) -> None:
        """Count an operation ``by`` 1, or by -1 what was counted of it before."""
        self.seen += by
        self.ended += by * (seen.outcome is not Outcome.PENDING)
        self.unsuccessful += by * (seen.outcome is Outcome.UNSUCCESSFUL)


class _Failure:
    """What operations failed of: the first that did, and how many did."""

    def __init__(self, first: Operation) -> None:
        self._first = first
        self.times = 0

    def line(self) -> Text:
        """The failure in a line."""
        first = self._first
        told = f": {first.error}" if first.error else ""
        line = f"{first.action} {first.status} in {first.project_id}{told}"
        if len(line) > LONGEST_FAILURE:
            line = f"{line[:LONGEST_FAILURE]}..."
        more = f" (and {self.times - 1} more)" if self.times > 1 else ""
        return Text(f"{_printable(line)}{more}", "red")


class _Tally:
    """All operations seen, in numbers."""

    def __init__(self) -> None:
        self.projects: dict[str, _Project] = {}
        self._failures: dict[str, _Failure] = {}
        self._seen: dict[OperationRef, _Seen] = {}
        self._statuses: Counter[OperationStatus] = Counter()

    def note(self, operation: Operation) -> _Failure | None:
        """Count a record; answers the failure it tells of if none told so before."""
        before = self._seen.get(operation.ref)
        if before is not None and operation.updated_at < before.updated_at:
            return None  # two waits may differ in how far they are
        seen = _Seen(operation.status, operation.updated_at, outcome(operation, utc_now()))
        self._seen[operation.ref] = seen
        project = self.projects.setdefault(operation.project_id, _Project())
        if before is not None:
            project.count(before, -1)
            self._statuses[before.status] -= 1
        project.count(seen, 1)
        self._statuses[seen.status] += 1
        had_failed = before is not None and before.outcome is Outcome.UNSUCCESSFUL
        if seen.outcome is Outcome.UNSUCCESSFUL and not had_failed:
            return self._note_failure(operation)
        return None

    def _note_failure(self, operation: Operation) -> _Failure | None:
        text = operation.error or operation.status
        failure = self._failures.setdefault(text, _Failure(operation))
        failure.times += 1
        return failure if failure.times == 1 else None

    def failed(self) -> list[Text]:
        """A line for each text that operations failed with, up to a bound."""
        lines = [failure.line() for failure in islice(self._failures.values(), MOST_FAILURES)]
        if (left := len(self._failures) - MOST_FAILURES) > 0:
            lines.append(Text(f"and {_number(left, 'more failure')}", "red"))
        return lines

    def by_status(self) -> list[Text]:
        """How many operations have each status, in a line; none where there are none."""
        counts = [
            Text(f"{count} {_printable(status)}", _style(status))
            for status, count in self._statuses.items()
            if count
        ]
        return [Text(", ").join(counts)] if counts else []


def _bars(projects: dict[str, _Project], room: int, width: int) -> Table:
    """A line a project: all in order if there is room, else the pending, then the failed first."""
    order = list(projects.items())
    if len(order) > room:
        order.sort(key=lambda item: (item[1].ended == item[1].seen, not item[1].unsuccessful))
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True, overflow="ellipsis")
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, justify="right")
    table.add_column(no_wrap=True, style="red")
    for id, one in order[:room]:
        colour = "red" if one.unsuccessful else "green"
        bar = ProgressBar(
            one.seen, one.ended, width=width, complete_style=colour, finished_style=colour
        )
        failed = f"{one.unsuccessful} failed" if one.unsuccessful else ""
        table.add_row(Text(id), bar, f"{one.ended} of {one.seen}", failed)
    if len(order) > room:
        table.add_row(f"and {_number(len(order) - room, 'more project')}", style="dim")
    return table


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _style(status: OperationStatus) -> str:
    if status in SUCCEEDED:
        return "green"
    return "red" if status in UNSUCCESSFUL else "yellow"


def _printable(text: str) -> str:
    """A text of the platform's in a line, with nothing in it that a terminal obeys."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
