"""A step, such as migrations, that one process of a test run performs for all its processes."""

import re
import threading
import traceback
from collections.abc import Callable
from itertools import dropwhile
from pathlib import Path
from typing import Final, NamedTuple, Protocol, TypeAlias

import pytest

ATTEMPTS: Final = 2
"""The number of processes that may perform a step: the second one tries if the first one dies."""

NOT_PREPARED: Final = "the databases of this test run could not be prepared: "
"""The start of most failure messages, before the cause."""
_PASSWORD: Final = re.compile(r"(?<=:)[^:/@\s]+(?=@)")

_FOLDERS_OF_CALLERS: Final = tuple(
    f"{folder}/"
    for folder in (
        Path(__file__).parent,
        Path(__file__).parent.with_name("neonctl_async"),
        Path(threading.__file__).parent,
    )
)
"""The folders of the code that calls the user's code: ours and the standard library's."""


class PreparationError(RuntimeError):
    """The databases of the test run could not be prepared. Every test that needs them fails."""

    is_shown: bool = False
    """True if a report of this process contains the traceback."""

    def report(self, *, show_locals: bool = False) -> str:
        """Return the text for a test's report. The first report may contain the traceback."""
        if self.__cause__ is None or self.is_shown:
            return f"E   {self}"
        self.is_shown = True
        return f"E   {self}\n\n{_shown_traceback(self.__cause__, show_locals=show_locals)}"


class Outcome(NamedTuple):
    """The result of a step for all processes, or the text of its error.

    ``note`` is a line for the summary of the test run.
    """

    result: str = ""
    error: str | None = None
    note: str = ""

    def unwrap(self) -> str:
        """Return the result. Raise PreparationError if the step failed."""
        if self.error is not None:
            raise PreparationError(self.error)
        return self.result


Step: TypeAlias = Callable[[], Outcome]
"""Performs the step, and returns its outcome for the other processes."""


class Claims(Protocol):
    """Assigns the step to the first process that claims it."""

    def claim(self) -> Outcome | None:
        """Return the outcome, or None if the caller must perform the step."""

    def record(self, outcome: Outcome) -> None:
        """Record the outcome."""

    def release(self) -> None:
        """Record that the caller stopped before it had an outcome."""


def perform_once(claims: Claims, step: Step) -> str:
    """Return the result of ``step``. Perform it if no process has claimed it yet.

    Raise PreparationError if it fails, here or in another process. KeyboardInterrupt and the like
    are raised unchanged; another process then performs the step.
    """
    outcome = claims.claim()
    if outcome is not None:
        return outcome.unwrap()
    try:
        outcome = step()
    except (Exception, SystemExit, pytest.fail.Exception, pytest.skip.Exception) as error:
        text = f"{NOT_PREPARED}{summarize(error)}"
        claims.record(Outcome(error=text))
        raise PreparationError(text) from error
    except BaseException:
        claims.release()
        raise
    claims.record(outcome)
    return outcome.result


def summarize(error: BaseException) -> str:
    """Return the type of an error and the first line of its message, without passwords in URIs."""
    line = next((line for line in str(error).splitlines() if line.strip()), "").strip()
    text = f"{type(error).__name__}: {line}".removesuffix(": ")
    return _PASSWORD.sub("********", text)


def _shown_traceback(error: BaseException, *, show_locals: bool) -> str:
    """Return the traceback, starting at the user's code, without passwords in URIs."""
    shown = traceback.TracebackException.from_exception(error, capture_locals=show_locals)
    from_user = dropwhile(lambda frame: frame.filename.startswith(_FOLDERS_OF_CALLERS), shown.stack)
    shown.stack = traceback.StackSummary.from_list(list(from_user) or shown.stack)
    return _PASSWORD.sub("********", "".join(shown.format())).rstrip()


class LocalClaims:
    """Assigns the step to the first worker that claims it, in threads of the main process.

    With ``is_alone``, only an error is final: after a success, the only process claims the step
    again if it has lost the result.
    """

    def __init__(self, *, is_alone: bool = False) -> None:
        self._is_alone = is_alone
        self._condition = threading.Condition()
        self._outcome: Outcome | None = None
        self._is_claimed = False
        self._attempts = 0

    @property
    def report(self) -> str | None:
        """The line for the summary of the test run: the error of the step, or its note."""
        return None if self._outcome is None else self._outcome.error or self._outcome.note or None

    def claim(self) -> Outcome | None:
        """Return the outcome, or None if the caller must perform the step.

        Wait while another caller performs it.
        """
        with self._condition:
            self._condition.wait_for(lambda: self._outcome is not None or not self._is_claimed)
            self._is_claimed = True
            if self._is_alone and self._outcome is not None and self._outcome.error is None:
                self._outcome = None
            return self._outcome

    def record(self, outcome: Outcome) -> None:
        """Record the outcome, unless another one has been recorded."""
        with self._condition:
            self._outcome = self._outcome or outcome
            self._condition.notify_all()

    def release(self, *, is_attempt: bool = True) -> None:
        """Assign the step to the next caller, or make it fail after ``ATTEMPTS`` callers.

        ``is_attempt`` is False if the caller died before it could start.
        """
        with self._condition:
            self._attempts += is_attempt
            self._is_claimed = False
            if self._attempts >= ATTEMPTS:
                text = f"{ATTEMPTS} processes ended while they prepared the databases of this run"
                self._outcome = self._outcome or Outcome(error=text)
            self._condition.notify_all()
