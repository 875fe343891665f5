"""The faults that a campaign has injected, and the truth that clients were sent."""

from collections import Counter
from collections.abc import Iterable


class FaultLog:
    """The injected faults, and the requests that met them."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.by_request: dict[str, str] = {}
        """The fault by ``X-Request-ID``. A fault of the request hides that of a record."""
        self.unchanged: set[str] = set()
        """The requests that met no fault of a request."""
        self.finished: set[str] = set()
        """The operations that the control plane has reported as finished."""
        self.failed: set[str] = set()
        """The operations that clients must take for failed."""
        self._terminal: dict[str, set[str]] = {}

    def add(self, request_id: str, fault: str) -> None:
        """Record that a request met a fault."""
        self.counts[fault] += 1
        self.by_request[request_id] = fault

    def add_record_fault(self, request_id: str, fault: str) -> None:
        """Record that a response contained a record with a fault, or lacked the record."""
        self.counts[fault] += 1
        self.by_request.setdefault(request_id, fault)

    def add_terminal_records(self, request_id: str, operations: Iterable[str]) -> None:
        """Record that a response contained true and terminal records of operations."""
        self._terminal[request_id] = set(operations)

    def reported(self, request_id: str, operation: str) -> bool:
        """Return whether an unchanged response contained a true and terminal record."""
        return request_id in self.unchanged and operation in self._terminal.get(request_id, ())
