"""How long operations of each kind take, learned from those that are waited for. Pure: no I/O."""

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

ENOUGH = 5
"""Durations of a kind to have seen before they are trusted."""
SAMPLE = 256
"""Operations of a kind that are followed at a time, and durations that are remembered."""
POLLS = 4
"""Looks into which the range of durations is divided."""
CREDIBLE = 0.5
"""Those to go by, at the least, as a share of those of which the end may only not be known yet."""
NEARLY_ALL = 0.9
"""The share that has to have ended for the rest to count as exceptions."""
MOVED = 0.05
"""The share by which the expected end of a kind has to move for all pollers to plan anew."""


class Prediction(NamedTuple):
    """When operations of one kind are likely to have ended, in seconds from their begin."""

    quantiles: tuple[float, ...] = ()
    """By each the same share has ended, by the last one all; empty where nothing is known."""
    is_complete: bool = True
    """Whether that was seen. Else the last mark is where those that go on are expected to end."""


UNKNOWN = Prediction()


class Observation:
    """An operation of the sample. Its times are those of one clock, in seconds."""

    __slots__ = ("action", "began", "pending_at")

    def __init__(self, action: str, began: float) -> None:
        self.action: str = action
        self.began: float = began
        self.pending_at: float = began
        """When it was last seen not to have ended."""


class _Seen(NamedTuple):
    """How long an operation took, or has not ended within."""

    seconds: float
    has_ended: bool


class _Kind:
    """A sample of the operations of one kind: some that have ended, some that are followed."""

    def __init__(self) -> None:
        self.ended: deque[_Seen] = deque(maxlen=SAMPLE)
        """And those that were given up, which took longer than they were waited for."""
        self.observation: dict[Observation, None] = {}
        self.offered = 0
        self.stride = 1
        self.prediction = UNKNOWN
        self.told = 0.0
        """The last mark, when pollers were last told of one."""

    def follow(self, action: str, began: float) -> Observation | None:
        if not self.observation:
            self.offered, self.stride = 0, 1
        self.offered += 1
        if self.offered % self.stride:
            return None
        if len(self.observation) == SAMPLE:
            # Among too many, only every second is followed, those that come included.
            self.observation = dict.fromkeys(list(self.observation)[::2])
            self.stride *= 2
        one = Observation(action, began)
        self.observation[one] = None
        return one

    def release(self, one: Observation, seen: _Seen) -> bool:
        """Remember what was seen of an operation; whether it was in the sample."""
        if one not in self.observation:
            return False
        del self.observation[one]
        self.ended.append(seen)
        return True

    def update(self, now: float) -> bool:
        """Look at the sample anew; whether much has changed."""
        durations = sorted(one.seconds for one in self.ended if one.has_ended)
        if len(durations) < ENOUGH:
            return False
        given_up = [one.seconds for one in self.ended if not one.has_ended]
        pending_for = sorted([*given_up, *(one.pending_at - one.began for one in self.observation)])
        ages = sorted([*given_up, *(now - one.began for one in self.observation)])
        shares = _shares_ended(durations, pending_for, ages)
        if len(shares) < ENOUGH:
            return False
        self.prediction = _predict(shares, pending_for)
        expected = self.prediction.quantiles[-1]
        if abs(expected - self.told) <= MOVED * expected:
            return False
        self.told = expected
        return True


class Forecast:
    """A small sketch of how long each kind of operation took lately.

    It follows a sample of the operations from their begin to their end. To go by those that have
    ended alone would be to go by the short ones: the long ones have not ended yet.
    """

    def __init__(self) -> None:
        self._kinds: dict[str, _Kind] = {}
        self._changed: set[str] = set()

    def follow(self, action: str, began: float) -> Observation | None:
        """Take an operation that began then into the sample, unless it is passed over."""
        return self._kinds.setdefault(action, _Kind()).follow(action, began)

    def note_pending(self, one: Observation, now: float) -> None:
        """An operation has not ended yet."""
        one.pending_at = now
        if one in self._kinds[one.action].observation:
            self._changed.add(one.action)

    def note_end(self, one: Observation, duration: float) -> None:
        """An operation has ended after so long."""
        if self._kinds[one.action].release(one, _Seen(duration, has_ended=True)):
            self._changed.add(one.action)

    def forget(self, one: Observation) -> None:
        """An operation is no longer looked at."""
        waited = one.pending_at - one.began
        self._kinds[one.action].release(one, _Seen(waited, has_ended=False))

    def update(self, now: float) -> bool:
        """Take in what was noted; whether looks that are planned should be planned anew."""
        news = [self._kinds[action].update(now) for action in self._changed]
        self._changed.clear()
        return any(news)

    @property
    def is_empty(self) -> bool:
        """Whether no kind is known yet."""
        return not any(kind.told for kind in self._kinds.values())

    def prediction(self, action: str) -> Prediction:
        """What is known of a kind."""
        kind = self._kinds.get(action)
        return UNKNOWN if kind is None else kind.prediction


class _Share(NamedTuple):
    """The share of all operations that have ended within so many seconds."""

    ended: float
    within: float


def _shares_ended(
    durations: Sequence[float], pending_for: Sequence[float], ages: Sequence[float]
) -> list[_Share]:
    """The estimate of Kaplan and Meier (1958), from values in rising order.

    It goes as far as there are enough to go by, beside those of which it is not known whether they
    have ended: they are as old by now, but were not looked at lately.
    """
    go_on = 1.0
    shares: list[_Share] = []
    for place, duration in enumerate(durations):
        seen_younger = bisect_left(pending_for, duration)
        at_risk = len(durations) - place + len(pending_for) - seen_younger
        if at_risk < CREDIBLE * (seen_younger - bisect_left(ages, duration)):
            break
        go_on *= 1 - 1 / at_risk
        shares.append(_Share(1 - go_on, duration))
    return shares


def _predict(shares: Sequence[_Share], pending_for: Sequence[float]) -> Prediction:
    is_complete = shares[-1].ended >= NEARLY_ALL
    last = shares[-1].within if is_complete else _expected_end(shares, pending_for)
    wanted = [poll / POLLS - 1e-9 for poll in range(1, POLLS)]
    places = [bisect_left(shares, share, key=lambda one: one.ended) for share in wanted]
    quantiles: list[float] = []
    for within in [*(shares[place].within for place in places if place < len(shares)), last]:
        # A little later, so that the look finds what ends there; looks closer than that are one.
        mark = within * 1.02 + 0.02
        if quantiles and mark - quantiles[-1] < 0.1 * mark:
            quantiles.pop()
        quantiles.append(mark)
    return Prediction(tuple(quantiles), is_complete)


def _expected_end(shares: Sequence[_Share], pending_for: Sequence[float]) -> float:
    """When the rest will have ended at the pace of the others.

    After a gap in which none has ended, not before as long a time has passed again.
    """
    first, latest = shares[0].within, shares[-1].within
    now = max(latest, *pending_for)
    go_on = 1 - shares[-1].ended
    return now + max(go_on / shares[-1].ended * (now - first), now - latest)
