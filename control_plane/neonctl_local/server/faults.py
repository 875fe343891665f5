"""Injected faults: errors between a client and the local control plane, planned by a test.

Faults act before the API key is checked, like faults in a network, or in a proxy in front of the
server.
"""

import random
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import count
from typing import Final, Literal, TypeVar

import msgspec

from neonctl_local.engine.lifecycle import Failure
from neonctl_local.settings import check_action

When = Literal["before", "after"]
T = TypeVar("T")

_ROUTE: Final = re.compile(r"[A-Z]+ /|\*$")
_HEADER_NAME: Final = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
_CONTROL_CHARACTER: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_FRAMING: Final = frozenset({"content-length", "transfer-encoding"})
_MOST: Final = 10**9
"""The largest number in a planned failure. Much larger ones do not fit into the database."""

PLANNED: Final = frozenset({"failed", "error", "cancelled", "skipped"})
"""The terminal statuses that :class:`FailNext` can plan."""


class FailNext(Failure, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A failure of operations: the arguments of ``LocalControlPlane.fail_next``.

    Raises ValueError as that method does.
    """

    action: str
    times: int = 1
    after: int = 0
    branch: str | None = None

    def __post_init__(self) -> None:
        check_action(self.action)
        _check(self, _RULES_OF_FAILURES)


_RULES_OF_FAILURES: Final[tuple[tuple[Callable[[FailNext], bool], str], ...]] = (
    (
        lambda it: it.status in PLANNED,
        f"status is {{0.status!r}}: expected one of {', '.join(sorted(PLANNED))}",
    ),
    (lambda it: 1 <= it.times <= _MOST, f"times is {{0.times}}: expected 1 to {_MOST}"),
    (
        lambda it: 0 <= it.after <= _MOST,
        f"after is {{0.after}}: expected 0 to {_MOST} operations",
    ),
    (lambda it: it.branch != "", "branch is empty: expected a name or an id"),
    (
        lambda it: it.retry_after is None or 0 <= it.retry_after <= _MOST,
        f"retry_after is {{0.retry_after}}: expected 0 to {_MOST} seconds",
    ),
    (
        lambda it: it.show_retry_at or it.retry_after is not None,
        "show_retry_at is False, but the operation never runs again: pass retry_after",
    ),
)


class Fault(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A fault that affects the requests to a route.

    ``route`` is a method and a path template, such as ``"GET /projects/{project_id}"``, or ``"*"``
    for every request. The fault ignores the first ``after`` requests to its route. Of the others,
    it selects one in ``every``, starting with the first, and affects each selected request with
    ``probability``, using random numbers from ``seed``. It affects at most ``times`` requests.
    Requests that an older fault has affected do not count. With ``branch``, the name or the id of a
    branch, only requests with this branch in their path count. With ``seconds``, the fault ends
    that long after it was injected. The effects that are set take place in this order:

    - ``delay``: seconds to wait. The server then handles the request, even if the client has
      disconnected.
    - ``hang``: send no response until the client gives up or the server stops.
    - ``drop``: close the connection without a response.
    - ``status``: send this status, with ``message``, ``code`` and ``headers``.
    - ``html``: send an HTML page, like a proxy. The status is 502 if ``status`` is not set.
    - ``truncate``: close the connection in the middle of the real response's body.

    ``when`` is ``"before"`` to fail without handling the request, or ``"after"`` to handle the
    request first; this applies to ``delay`` too. ``truncate`` always handles the request first.
    """

    route: str = "*"
    branch: str | None = None
    seconds: float | None = None
    times: int | None = None
    after: int = 0
    every: int = 1
    probability: float = 1.0
    seed: int = 0
    delay: float = 0.0
    hang: bool = False
    drop: bool = False
    status: int | None = None
    code: str = ""
    message: str = "a planned fault"
    headers: dict[str, str] = {}
    html: bool = False
    truncate: bool = False
    when: When = "before"

    def __post_init__(self) -> None:
        _check(self, _RULES_OF_FAULTS)

    @property
    def sends_response(self) -> bool:
        """True if the fault sends its own response."""
        return self.status is not None or self.html

    @property
    def suppresses_response(self) -> bool:
        """True if the real response is not sent."""
        return self.hang or self.drop or self.sends_response


_RULES_OF_FAULTS: Final[tuple[tuple[Callable[[Fault], bool], str], ...]] = (
    (
        lambda it: _ROUTE.match(it.route) is not None,
        "route {0.route!r} is neither '*' nor like 'GET /projects'",
    ),
    (
        lambda it: it.branch is None or it.route == "*" or "{branch_id}" in it.route,
        "route {0.route!r} has no branch: with a branch, it is '*' or contains '{{branch_id}}'",
    ),
    (lambda it: it.branch != "", "branch is empty: expected a name or an id"),
    (
        lambda it: it.seconds is None or it.seconds > 0,
        "seconds is {0.seconds}: expected more than 0, or None",
    ),
    (lambda it: 0 <= it.probability <= 1, "probability is {0.probability}: expected 0 to 1"),
    (
        lambda it: it.times is None or it.times >= 1,
        "times is {0.times}: expected at least 1, or None",
    ),
    (lambda it: it.after >= 0, "after is {0.after}: expected 0 or more requests"),
    (lambda it: it.every >= 1, "every is {0.every}: expected at least 1"),
    (lambda it: it.delay >= 0, "delay is {0.delay}: expected 0 or more seconds"),
    (
        lambda it: it.status is None or 200 <= it.status <= 599,
        "status is {0.status}: expected 200 to 599",
    ),
    (
        lambda it: all(map(_HEADER_NAME.fullmatch, it.headers)),
        "headers are {0.headers}: expected names of letters, digits and hyphens",
    ),
    (
        lambda it: not any(map(_CONTROL_CHARACTER.search, it.headers.values())),
        "headers are {0.headers}: expected values without line breaks and control characters",
    ),
    (
        lambda it: _FRAMING.isdisjoint(map(str.lower, it.headers)),
        "the server sets Content-Length and Transfer-Encoding itself: leave them out of headers",
    ),
    (
        lambda it: not it.html or "content-type" not in map(str.lower, it.headers),
        "an html fault sets Content-Type itself: leave it out of headers",
    ),
    (
        lambda it: bool(it.delay or it.suppresses_response or it.truncate),
        "this fault does nothing: set delay, hang, drop, status, html or truncate",
    ),
)


def _check(value: T, rules: Iterable[tuple[Callable[[T], bool], str]]) -> None:
    """Raise ValueError with the text of the first rule that does not hold."""
    for holds, text in rules:
        if not holds(value):
            raise ValueError(text.format(value))


PRESETS: Final[Mapping[str, tuple[Fault, ...]]] = {
    "rate-limited": (
        Fault(
            status=429, seconds=60, message="a planned rate limit", headers={"Retry-After": "60"}
        ),
    ),
    "one-in-twenty": (Fault(every=20, status=503),),
    "slow-friday": (Fault(every=10, delay=20.0), Fault(delay=2.0)),
}
"""Faults with a name: a rate limit for a minute, one failure in twenty requests, and a
network on which every request takes two seconds and one in ten takes twenty."""


def preset(name: str) -> tuple[Fault, ...]:
    """Return the faults of a preset. Raise ValueError if there is no such preset."""
    if name not in PRESETS:
        raise ValueError(f"{name[:100]!r} is no preset: expected one of {', '.join(PRESETS)}")
    return PRESETS[name]


class InjectedFault:
    """An active fault, and the number of times that it ``fired``.

    ``number`` is unique among the faults of a tenant. The fault ends at ``ends_at``.
    """

    def __init__(self, fault: Fault, number: int = 0, ends_at: float | None = None) -> None:
        self.fault = fault
        self.number = number
        self.ends_at = ends_at
        self.fired: int = 0
        self._matched = 0
        self._random = random.Random(fault.seed)

    def __repr__(self) -> str:
        return f"<InjectedFault fired={self.fired} {self.fault}>"

    def fires(self, route: str, branch: Collection[str] = ()) -> bool:
        """Return whether the fault fires on a request to ``route``, and count it if so.

        ``branch`` contains the id and the name of the branch in the path of the request.
        """
        fault = self.fault
        if fault.route not in ("*", route):
            return False
        if fault.branch is not None and fault.branch not in branch:
            return False
        turn = self._matched - fault.after
        self._matched += 1
        if turn < 0 or turn % fault.every:
            return False
        if fault.times is not None and self.fired >= fault.times:
            return False
        if self._random.random() >= fault.probability:
            return False
        self.fired += 1
        return True


class Faults:
    """The active faults, oldest first. At most one fault fires on a request."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._injected: list[InjectedFault] = []
        self._numbers = count(1)

    @property
    def injected(self) -> tuple[InjectedFault, ...]:
        """Every active fault, with its count."""
        self._end()
        return tuple(self._injected)

    @property
    def name_branches(self) -> bool:
        """True if a fault applies to a single branch only."""
        return any(injected.fault.branch is not None for injected in self._injected)

    def inject(self, fault: Fault) -> InjectedFault:
        """Activate a fault."""
        ends_at = None if fault.seconds is None else self._clock() + fault.seconds
        injected = InjectedFault(fault, next(self._numbers), ends_at)
        self._injected.append(injected)
        return injected

    def remove(self, number: int) -> bool:
        """Remove the fault with this number. Return False if there is none."""
        left = [injected for injected in self._injected if injected.number != number]
        found = len(left) < len(self._injected)
        self._injected = left
        return found

    def clear(self) -> None:
        """Remove all faults."""
        self._injected.clear()

    def next_for(self, route: str, branch: Collection[str] = ()) -> Fault | None:
        """Return the fault that fires on this request to ``route``, if any.

        ``branch`` contains the id and the name of the branch in its path.
        """
        self._end()
        for injected in self._injected:
            if injected.fires(route, branch):
                return injected.fault
        return None

    def _end(self) -> None:
        """Remove the faults that have ended."""
        now = self._clock()
        self._injected = [one for one in self._injected if one.ends_at is None or now < one.ends_at]
