import pytest

from neonctl_async import (
    ClientClosedError,
    ConfigurationError,
    ConnectionFailedError,
    NotConnectableError,
    NotFoundError,
    OperationFailedError,
    RequestTimeoutError,
    TransportError,
    WaitTimeoutError,
)
from neonctl_async.cli.exits import exit_code


def lost(kind: type[TransportError]) -> TransportError:
    return kind("no answer", method="GET", path="/", request_id="1", maybe_delivered=False)


def not_connectable(*, is_final: bool) -> NotConnectableError:
    return NotConnectableError(
        endpoint_id="ep-1", host="h", stage="dns", reason="no", is_final=is_final, timeout=1.0
    )


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OperationFailedError(failed=[], settled=[], pending=[]), 1),
        (not_connectable(is_final=True), 1),
        (ValueError("branch_id is empty"), 2),
        (ConfigurationError("no key"), 2),
        (NotFoundError(status=404, message="", method="GET", path="/"), 3),
        (lost(ConnectionFailedError), 3),
        (lost(RequestTimeoutError), 3),
        (ClientClosedError("closed"), 3),
        (WaitTimeoutError(timeout=1.0, settled=[], pending=[], last_error=None), 4),
        (not_connectable(is_final=False), 4),
    ],
)
def test_error_maps_to_its_exit_code(error: Exception, code: int) -> None:
    assert exit_code(error) == code
