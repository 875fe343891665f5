"""Planned faults: what a test makes go wrong between a client and the control plane.

They come before everything else, as a network or a proxy in front would.
"""

import random
from typing import Literal

import msgspec

When = Literal["before", "after"]


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that goes wrong with the requests of a route.

    ``route`` is a method and a path template, ``"GET /projects/{project_id}/operations"``, or
    ``"*"`` for every request. It fires at most ``times``, each time with ``probability``, drawn
    from ``seed``. What happens, in this order, each where it is set:

    - ``delay``: seconds that pass first; the request is then served, its client there or not;
    - ``hang``: no answer comes until the client gives up or the plane stops;
    - ``drop``: the connection is closed without an answer;
    - ``status``: this status is answered, with ``message``, ``code`` and ``headers``;
    - ``html``: the body is an HTML page, as of a proxy (with 502 unless ``status`` is given);
    - ``truncate``: the connection is closed in the middle of the true answer's body.

    ``when`` says whether the request's work is left undone, or done before it goes wrong, the
    delay included. A truncated answer is always one to work that was done.
    """

    route: str = "*"
    times: int | None = None
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
        method, space, path = self.route.partition(" ")
        if self.route != "*" and not (method.isupper() and space and path.startswith("/")):
            raise ValueError(f"route {self.route!r} is neither '*' nor like 'GET /projects'")
        if not 0 <= self.probability <= 1:
            raise ValueError("a probability is between 0 and 1")
        if self.times is not None and self.times < 1:
            raise ValueError("a fault fires at least once, or times is None")
        if self.delay < 0:
            raise ValueError("a delay is not negative")
        if self.status is not None and not 200 <= self.status <= 599:
            raise ValueError(f"status {self.status} is not within 200 to 599")
        self._refuse_bad_headers()
        if not (self.delay or self.ends or self.truncate):
            raise ValueError(
                "this fault does nothing: set delay, hang, drop, status, html or truncate"
            )

    def _refuse_bad_headers(self) -> None:
        for name, value in self.headers.items():
            if any(end in text for text in (name, value) for end in "\r\n"):
                raise ValueError(f"header {name!r} has a line break in its name or value")
            if self.html and name.lower() == "content-type":
                raise ValueError("an html fault has a Content-Type of its own")

    @property
    def answers(self) -> bool:
        """Whether it sends an answer of its own."""
        return self.status is not None or self.html

    @property
    def ends(self) -> bool:
        """Whether the true answer is not sent."""
        return self.hang or self.drop or self.answers


class InjectedFault:
    """A fault in force, and how often it ``fired``."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        self.fired: int = 0
        self._random = random.Random(fault.seed)

    def __repr__(self) -> str:
        return f"<InjectedFault fired={self.fired} {self.fault}>"

    def strikes(self, route: str) -> bool:
        """Whether it fires on a request of ``route``; counts it if so."""
        fault = self.fault
        if fault.route not in ("*", route):
            return False
        if fault.times is not None and self.fired >= fault.times:
            return False
        if self._random.random() >= fault.probability:
            return False
        self.fired += 1
        return True


class Faults:
    """The faults in force, oldest first. The first that strikes a request is the only one."""

    def __init__(self) -> None:
        self._injected: list[InjectedFault] = []

    @property
    def injected(self) -> tuple[InjectedFault, ...]:
        """Every fault in force, with its count."""
        return tuple(self._injected)

    def inject(self, fault: Fault) -> InjectedFault:
        """Put a fault in force."""
        injected = InjectedFault(fault)
        self._injected.append(injected)
        return injected

    def clear(self) -> None:
        """Take all of them away."""
        self._injected.clear()

    def strike(self, route: str) -> Fault | None:
        """The fault that a request of ``route`` meets."""
        for injected in self._injected:
            if injected.strikes(route):
                return injected.fault
        return None
