"""The objects that the responses of a server confirm, and the differences from its data."""

from collections import Counter
from collections.abc import Iterable
from enum import Enum


class State(Enum):
    """The state of an object, as the responses show it."""

    PRESENT = "present"
    ABSENT = "absent"
    UNKNOWN = "present or absent, because a request for it got no response"


class Ledger:
    """The objects of one kind in one place, by their unique names."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._states: dict[str, State] = {}

    def attempt(self, name: str) -> None:
        """Record that a request for an object is sent."""
        self._states[name] = State.UNKNOWN

    def confirm(self, name: str, state: State) -> None:
        """Record the response to the request for an object."""
        self._states[name] = state

    def names(self, state: State) -> list[str]:
        """Return the names of the objects in a state, oldest first."""
        return [name for name, found in self._states.items() if found is state]

    def differences(self, found: Iterable[str]) -> list[str]:
        """Compare with the names that a server lists. Return one line per difference."""
        counts = Counter(found)
        lines = [f"{self._kind} {name} exists {n} times" for name, n in counts.items() if n > 1]
        lines += [f"{self._kind} {name} is unknown" for name in counts if name not in self._states]
        for name, state in self._states.items():
            if state is not State.UNKNOWN and (state is State.PRESENT) != (name in counts):
                lines.append(f"{self._kind} {name} should be {state.value}")
        return lines


class Register:
    """A value that one client changes. After a lost response, there are two possible values."""

    def __init__(self, name: str, value: str) -> None:
        self._name = name
        self._possible = {value}

    def attempt(self, value: str) -> None:
        """Record that a request with a new value is sent."""
        self._possible.add(value)

    def confirm(self, value: str) -> None:
        """Record the response to the request with a new value."""
        self._possible = {value}

    def differences(self, value: str) -> list[str]:
        """Compare with the value that a server returns. It is the only possible one from then."""
        if value not in self._possible:
            return [f"{self._name} is {value}, expected one of {sorted(self._possible)}"]
        self._possible = {value}
        return []
