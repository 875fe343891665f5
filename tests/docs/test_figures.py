"""The figures in the text of README and docs are those of the code."""

import ast
import inspect
import re
from collections.abc import Iterator, Mapping

import msgspec
import pytest

from neonctl_async import (
    NeonClient,
    PollPolicy,
    RateBudget,
    RetryPolicy,
    Timeout,
    WaitOptions,
    progress,
)
from neonctl_async.cli import demonstration
from neonctl_async.connections import probe, waits
from neonctl_async.errors import APIError
from neonctl_async.provisioning import deletion, ephemeral
from neonctl_async.provisioning.fleet import Fleet, locked_projects, new_projects, order
from neonctl_async.transport import budget, pause, scheduler
from neonctl_async.transport.retry import MIN_ATTEMPT_SECONDS, may_retry
from neonctl_async.waiting import poll_plan as plan
from neonctl_async.waiting.scan import SCAN_MARGIN
from neonctl_async.waiting.source import POLL_TIMEOUT
from neonctl_async.waiting.timing import forecast, history, pace, prediction, schedule
from neonctl_async.waiting.waiter import DEFAULT_TIMEOUT
from tests.support.pages import TEXTS, code_blocks

PER_MINUTE = RateBudget().per_minute or 0
PER_ROUTE = RateBudget().per_route_per_second or 0
BRANCHES = demonstration.PROJECTS * demonstration.BRANCHES_PER_PROJECT
DEMO = rf"create(?:s)? {BRANCHES} branches in {demonstration.PROJECTS} projects"

WORDS: Mapping[float, str] = {
    3: "three",
    4: "four",
    5: "five",
    6: "six",
    8: "eight",
    9: "nine",
    10: "ten",
}


def poll_times(number: int) -> str:
    """Return the times of the first polls of a wait without history and without jitter."""
    times: list[float] = []
    for _ in range(number):
        waited = times[-1] if times else 0.0
        times.append(waited + schedule.growing_delay(PollPolicy(), waited, 0.5))
    *shown, last = (f"{each:.2f}" if each < 0.5 else f"{each:.1f}" for each in times)
    return f"{', '.join(shown)} and {last}".replace(".0,", ",")


POLL_TIMES = poll_times(11)

STATEMENTS = [
    ("README.md", DEMO),
    ("docs/quick-start.md", DEMO),
    ("docs/fan-out.md", f"allows {PER_MINUTE} requests per minute"),
    ("docs/from-neon-api.md", f"an account has {PER_MINUTE}"),
    ("docs/why.md", f"An account has {PER_MINUTE}"),
    ("docs/polling.md", f"{PER_MINUTE} requests a minute"),
    ("docs/polling.md", f"lists its {history.HISTORY_PAGE} newest operations"),
    ("docs/polling.md", f"more than {history.HISTORY_PAGE - SCAN_MARGIN} are pending"),
    ("docs/polling.md", f"{WORDS[SCAN_MARGIN]} more than are pending"),
    ("docs/polling.md", f"{WORDS[SCAN_MARGIN]} operations beyond the oldest"),
    ("docs/polling.md", f"{history.MAX_AGE.days} days older"),
    ("docs/polling.md", f"below {history.MIN_WHOLE_SECONDS:.0f} s are ignored"),
    ("docs/polling.md", f"longer than {prediction.USUAL:.0%} of the others".replace("%", " %")),
    ("docs/polling.md", f"newest {forecast.DURATIONS} durations"),
    ("docs/polling.md", f"only {WORDS[pace.SCOUTS]} of them"),
    ("docs/polling.md", f"at most {WORDS[pace.UNKNOWN_POLLS]} polls each"),
    ("docs/polling.md", f"at least {WORDS[pace.CROWD]} times as long"),
    ("docs/polling.md", f"their ratio, at most {pace.MAX_STRETCH:.0f}"),
    ("docs/polling.md", f"polled within the last {plan.FIRST_POLL_GAP} s"),
    ("docs/polling.md", f"a last poll {plan.LAST_POLL_MARGIN} s before"),
    ("docs/polling.md", f"within the next {plan.LAST_POLLS_TOGETHER} s"),
    ("docs/retries.md", f"one call every {60 / scheduler.HELD_CALL_SHARE / PER_MINUTE:.1f} s"),
    ("docs/retries.md", f"wait for {budget.HELD_SECONDS:.0f} s or more"),
    ("docs/retries.md", f"full speed after {pause.SLOW_START_SECONDS:.0f} s"),
    ("docs/retries.md", f"at least {MIN_ATTEMPT_SECONDS} s"),
    ("docs/settings.md", rf"\| A request of a poll \| .* \| {POLL_TIMEOUT:.0f} s \|"),
    ("docs/waiting.md", f"no response within {POLL_TIMEOUT:.0f} s"),
    ("docs/waiting.md", f"at most {DEFAULT_TIMEOUT:.0f} seconds"),
    ("docs/waiting.md", f"by default {DEFAULT_TIMEOUT:.0f} seconds"),
    ("docs/waiting.md", f"at least every {pace.CROWD * PollPolicy().maximum:.0f} seconds"),
    ("docs/polling.md", f"polls come after about {POLL_TIMES} seconds"),
    ("docs/progress.md", f"Up to {progress.MAX_PROJECTS} projects"),
    ("docs/progress.md", f"Up to {WORDS[progress.MAX_FAILURES]} different error texts"),
    ("docs/progress.md", f"{WORDS[1 / progress.FRAME_SECONDS]} times per second"),
    ("docs/progress.md", f"one line every {progress.LINE_SECONDS:.0f} seconds"),
    ("docs/branches.md", f"at the latest after {ephemeral.CLEANUP_SECONDS:.0f} seconds"),
    ("docs/branches.md", f"for {WORDS[sum(ephemeral.SEARCH_DELAYS)]} seconds"),
    ("docs/connectable.md", f"at most {probe.ATTEMPT_SECONDS:.0f} s after the name lookup"),
    ("docs/connectable.md", f"next address of a host after {probe.HEAD_START_SECONDS} s"),
    ("docs/connectable.md", f"at most {waits.MAX_CONCURRENT_PROBES} attempts at a time"),
    ("docs/connectable.md", f"at most {waits.LOOKUP_THREADS} names"),
    ("docs/prune.md", f"up to {WORDS[deletion.CONCURRENCY]} branches at the same time"),
    ("docs/fleets.md", f"After {WORDS[order.BATCH]} tenants of a project"),
    ("docs/fleets.md", f"at most {WORDS[locked_projects.MAX_SECONDS / 60]} minutes"),
    ("docs/fleets.md", f"for {WORDS[sum(new_projects.SEARCH_DELAYS)]} seconds"),
]
"""Patterns that match the text of a page, with figures from the code."""

CLASSES = {each.__name__: each for each in (PollPolicy, RateBudget, RetryPolicy, Timeout)}


def test_readme_is_short() -> None:
    assert len(TEXTS["README.md"].splitlines()) < 130


@pytest.mark.parametrize(("page", "pattern"), STATEMENTS)
def test_page_states_the_figure(page: str, pattern: str) -> None:
    assert re.search(pattern, " ".join(TEXTS[page].split()), re.IGNORECASE)


@pytest.mark.parametrize(
    ("page", "settings"),
    [
        ("docs/polling.md", PollPolicy()),
        ("docs/retries.md", RetryPolicy()),
        ("docs/retries.md", RateBudget()),
        ("docs/waiting.md", WaitOptions()),
    ],
)
def test_table_shows_the_default_of_each_option(page: str, settings: msgspec.Struct) -> None:
    options = {*settings.__struct_fields__} - {"store"}  # RateBudget.shared() sets it
    for name in sorted(options):
        default = getattr(settings, name)
        shown = {repr(default), re.sub("'", '"', repr(default))}
        assert any(f"| `{name}` | `{value}` |" in TEXTS[page] for value in shown), name


def test_table_shows_the_options_of_apply() -> None:
    for name, parameter in inspect.signature(Fleet.apply).parameters.items():
        assert name == "self" or f"`{name}={parameter.default!r}`" in TEXTS["docs/fleets.md"], name


def shown_settings() -> Iterator[tuple[str, object]]:
    """Yield the settings from ``timeout`` on in the first example of the page, evaluated."""
    _, code = next(code_blocks(TEXTS["docs/settings.md"], "python"))
    calls = (node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call))
    client = next(call for call in calls if ast.unparse(call.func) == "NeonClient")
    names = [keyword.arg or "" for keyword in client.keywords]
    for keyword in client.keywords[names.index("timeout") :]:
        yield keyword.arg or "", eval(ast.unparse(keyword.value), dict(CLASSES))


def test_example_of_the_settings_shows_the_defaults() -> None:
    parameters = inspect.signature(NeonClient).parameters
    for name, value in shown_settings():
        default = parameters[name].default
        if isinstance(value, msgspec.Struct):
            assert value == type(value)(), name
        else:
            assert (value or None) == (default or None), name


def test_table_shows_which_statuses_are_retried() -> None:
    section = TEXTS["docs/retries.md"].partition("## What is retried")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\d{3}[^|]*) \| (\w+) \| (\w+)[^|]*\|$", section, re.MULTILINE)
    shown = {
        int(status): (of_reads == "retry", of_others == "retry")
        for statuses, of_reads, of_others in rows
        for status in re.findall(r"\d{3}", statuses)
    }
    assert shown[401] == (False, False)
    for status in range(400, 600):
        error = APIError(status=status, message="failed", method="POST", path="/projects")
        retried = (may_retry(error, is_read=True), may_retry(error, is_read=False))
        assert shown.get(status, (False, False)) == retried, status
