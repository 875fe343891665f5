"""The reaction of a client to a 429. Pure: times are passed in."""

import math

from neonctl_async.transport.account import MINUTE

FIRST_PAUSE = 1.0
"""The pause after a 429 without ``Retry-After``, in seconds: the period of the route limits. Each
repetition is twice as long."""
MAX_PAUSE = MINUTE
"""The longest pause after any ``Retry-After``, in seconds. Neon's rate-limit windows are no
longer."""
SLOW_START_SECONDS = 15.0
"""The time from the trial to full speed, in seconds: a quarter of the account's window."""
SLOW_START_GAP = 0.1
"""The time between the first two requests of the slow start, in seconds: a quarter of the rate that
a route allows."""


class Pause:
    """A pause after a 429, then one request alone as a trial, then a slow start.

    A 429 means that other clients use the account too. A client that resumed at full speed would
    get another 429.
    """

    __slots__ = (
        "_has_trial_ended",
        "_needs_trial",
        "_resumed_at",
        "_seconds",
        "_trial",
        "is_active",
        "sendable_at",
    )

    def __init__(self) -> None:
        self.is_active: bool = False
        """True from a 429 until the end of the slow start."""
        self.sendable_at: float = -math.inf
        """The time before which no request is sent."""
        self._seconds = FIRST_PAUSE
        self._needs_trial = False
        self._trial: object = None
        self._has_trial_ended = False
        """True from the end of the trial until another request is sent."""
        self._resumed_at = -math.inf

    def start(self, retry_after: float | None, now: float) -> None:
        """Pause for ``retry_after`` seconds, or longer each time if it is None."""
        if self._needs_trial or self._trial is not None:
            # The request was sent before the pause. A failed trial is reported after its end.
            if retry_after:
                self.sendable_at = max(self.sendable_at, now + min(retry_after, MAX_PAUSE))
                self._needs_trial, self._trial = True, None
            return
        # Only the rejection of the trial shows that the pause was too short.
        grown = min(2 * self._seconds, MAX_PAUSE)
        self._seconds = grown if self._has_trial_ended else FIRST_PAUSE
        self.sendable_at = now + min(retry_after or self._seconds, MAX_PAUSE)
        self._needs_trial = self.is_active = True

    def note_sent(self, ticket: object, now: float) -> None:
        """Record that a request is sent: as the trial, or in the slow start."""
        self._has_trial_ended = False
        if self._needs_trial:
            self._needs_trial, self._trial = False, ticket
            self.sendable_at = self._resumed_at = now + FIRST_PAUSE
        else:
            self._trial = None  # other requests waited long enough for it
            self.sendable_at = now + SLOW_START_GAP * self._slowness(now)
            self.is_active = self.sendable_at > now

    def note_ended(self, ticket: object, now: float) -> None:
        """Record the end of a request. The end of the trial starts the slow start."""
        if ticket is self._trial:
            self._trial = None
            self._has_trial_ended = True
            self._resumed_at = now
            self.sendable_at = now + SLOW_START_GAP

    def note_cancelled(self, ticket: object) -> None:
        """Record that a request was not sent. Another request becomes the trial."""
        if ticket is self._trial:
            self._needs_trial, self._trial = True, None
            self.sendable_at = -math.inf

    def _slowness(self, now: float) -> float:
        """Return the part of the slow start that is left, from 1 down to 0."""
        return max(1 - (now - self._resumed_at) / SLOW_START_SECONDS, 0.0)
