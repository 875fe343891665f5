"""The exception tree, the messages and the attributes of errors."""

import copy
import inspect
import pickle
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

import neonctl_async
from neonctl_async import (
    APIError,
    AuthenticationError,
    ClientClosedError,
    ConfigurationError,
    ConflictError,
    ConnectionFailedError,
    ConnectionLostError,
    InvalidResponseError,
    LockedError,
    LookupFailedError,
    MismatchError,
    NeonError,
    NotConnectableError,
    NotFoundError,
    OperationFailedError,
    OperationRef,
    PermissionDeniedError,
    RateLimitedError,
    RequestTimeoutError,
    ServerError,
    StateTimeoutError,
    TransportError,
    WaitError,
    WaitTimeoutError,
    errors,
)
from neonctl_async.models.secret import decode_hook
from neonctl_async.types import Branch, BranchCreated, OperationsResponse
from tests.models.records import decode
from tests.support.records import branch_json, operation, operation_json

Line = tuple[int, str, str | None]


def tree_in_docstring() -> list[Line]:
    """Return depth, class and second base class of each line of the tree."""
    pattern = re.compile(r"^ {4}([│ ├└─]*)([A-Z]\w+)(?: \(also (\w+)\))?", re.MULTILINE)
    return [
        (len(indent) // 4, name, also or None)
        for indent, name, also in pattern.findall(errors.__doc__ or "")
    ]


def actual_tree(kind: type[NeonError] = NeonError, depth: int = 0) -> Iterator[Line]:
    """Yield the same for the classes of the module."""
    also = ", ".join(base.__name__ for base in kind.__bases__[1:])
    yield depth, kind.__name__, also or None
    for child in kind.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from actual_tree(child, depth + 1)


def api_error(status: int = 409, **more: Any) -> APIError:
    fields: dict[str, Any] = {"message": "busy", "method": "POST", "path": "/projects", **more}
    return APIError.for_status(status)(status=status, **fields)


def transport_error(kind: type[TransportError], *, maybe_delivered: bool) -> TransportError:
    return kind(
        "no connection",
        method="POST",
        path="/projects",
        request_id="req-1",
        maybe_delivered=maybe_delivered,
    )


def invalid_response() -> InvalidResponseError:
    return InvalidResponseError(
        "it is malformed",
        method="GET",
        path="/projects",
        status=200,
        request_id="req-1",
        excerpt="<html>",
    )


def pickled(error: NeonError) -> NeonError:
    copied_error: NeonError = pickle.loads(pickle.dumps(error))
    return copied_error


def failed(count: int = 1) -> OperationFailedError:
    unsuccessful = [operation(f"op-{number}", "failed") for number in range(count)]
    succeeded = operation("op-succeeded", "finished")
    return OperationFailedError(
        failed=unsuccessful, settled=[succeeded, *unsuccessful], pending=[operation("op-pending")]
    )


def timed_out(count: int = 1, last_error: NeonError | None = None) -> WaitTimeoutError:
    pending = [OperationRef(project_id="p-1", id=f"op-{number}") for number in range(count)]
    return WaitTimeoutError(
        timeout=2.5,
        settled=[operation("op-succeeded", "finished")],
        pending=pending,
        last_error=last_error,
    )


def never_ready(**more: Any) -> StateTimeoutError:
    fields: dict[str, Any] = {
        "what": "branch br-1 in p-1",
        "wanted": "ready",
        "state": "init",
        "pending_state": "ready",
        "timeout": 2.5,
        "settled": [operation("op-succeeded", "finished")],
        "pending": [operation("op-pending")],
        "last_error": None,
    }
    return StateTimeoutError(**{**fields, **more})


def not_connectable(**more: Any) -> NotConnectableError:
    fields: dict[str, Any] = {
        "endpoint_id": "ep-1",
        "host": "ep-1.example.com",
        "stage": "tcp",
        "reason": "no TCP connection to ep-1.example.com:5432: Connection refused",
        "is_final": False,
        "timeout": 2.5,
    }
    return NotConnectableError(**{**fields, **more})


def mismatch() -> MismatchError:
    return MismatchError(
        "branch 'preview' (br-1) of project p-1",
        existing=decode(Branch, branch_json()),
        differences=["protected is False instead of True", "it has no read_write compute"],
        path="/projects/p-1/branches",
    )


EVERY_ERROR: list[NeonError] = [
    NeonError("failed"),
    ConfigurationError("no API key"),
    ClientClosedError("the client is closed"),
    LookupFailedError("no branch has the name"),
    *(api_error(status) for status in (400, 401, 403, 404, 409, 423, 429, 500, 502)),
    mismatch(),
    api_error(429, retry_after=1.5, code="SLOW", request_id="req-1"),
    transport_error(TransportError, maybe_delivered=True),
    transport_error(ConnectionFailedError, maybe_delivered=False),
    transport_error(ConnectionLostError, maybe_delivered=True),
    transport_error(RequestTimeoutError, maybe_delivered=True),
    invalid_response(),
    WaitError("failed", settled=[], pending=[]),
    failed(),
    timed_out(),
    timed_out(last_error=api_error(503)),
    never_ready(),
    not_connectable(),
    not_connectable(is_final=True, others=["ep-2"]),
    never_ready(state=None, pending_state=None, pending=[], last_error=api_error(503)),
]


def test_docstring_shows_the_actual_tree() -> None:
    assert tree_in_docstring() == list(actual_tree())


def test_every_error_is_public() -> None:
    names = {name for name, _ in inspect.getmembers(errors, inspect.isclass)}
    own = {name for name in names if getattr(errors, name).__module__ == errors.__name__}
    assert own <= set(neonctl_async.__all__)


def test_every_class_is_tested() -> None:
    assert {type(error).__name__ for error in EVERY_ERROR} >= {
        name for _, name, _ in actual_tree()
    } - {"APIError"}


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *((status, APIError) for status in (302, 400, 408, 422, 499)),
        (401, AuthenticationError),
        (403, PermissionDeniedError),
        (404, NotFoundError),
        (409, ConflictError),
        (423, LockedError),
        (429, RateLimitedError),
        *((status, ServerError) for status in (500, 503, 599)),
    ],
)
def test_status_selects_the_class(status: int, kind: type[APIError]) -> None:
    assert APIError.for_status(status) is kind
    assert type(api_error(status)) is kind


def test_api_error_describes_request_and_response() -> None:
    error = api_error(409, message="name taken", code="TAKEN", request_id="req-1")
    assert str(error) == "POST /projects: 409 Conflict: name taken (request req-1)"
    assert (error.status, error.code, error.message) == (409, "TAKEN", "name taken")
    assert (error.method, error.path, error.request_id) == ("POST", "/projects", "req-1")
    assert error.retry_after is None


def test_message_without_request_id() -> None:
    assert str(api_error(409)) == "POST /projects: 409 Conflict: busy"


def test_message_of_an_unknown_status() -> None:
    assert str(api_error(499)) == "POST /projects: 499 unknown status: busy"


@pytest.mark.parametrize(
    ("maybe_delivered", "note"),
    [(True, "Neon may have executed the request"), (False, "nothing was sent")],
)
def test_transport_error_states_whether_the_request_was_sent(
    maybe_delivered: bool, note: str
) -> None:
    error = transport_error(ConnectionLostError, maybe_delivered=maybe_delivered)
    assert str(error).startswith("POST /projects: no connection; ")
    assert note in str(error)
    assert "req-1" in str(error)
    assert error.maybe_delivered is maybe_delivered


def test_invalid_response_error_shows_the_start_of_the_body() -> None:
    error = invalid_response()
    assert "GET /projects: 200" in str(error)
    assert "it is malformed" in str(error)
    assert "'<html>' (request req-1)" in str(error)


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (ConfigurationError("x"), ValueError),
        (transport_error(RequestTimeoutError, maybe_delivered=True), TimeoutError),
        (timed_out(), TimeoutError),
    ],
)
def test_some_errors_are_also_builtin_errors(error: NeonError, builtin: type[Exception]) -> None:
    with pytest.raises(builtin):
        raise error


@pytest.mark.parametrize("copy_error", [copy.copy, copy.deepcopy, pickled])
def test_copy_and_pickle_keep_message_and_attributes(
    copy_error: Callable[[NeonError], NeonError],
) -> None:
    for error in EVERY_ERROR:
        copied_error = copy_error(error)
        assert type(copied_error) is type(error)
        assert str(copied_error) == str(error)
        assert copied_error.args == error.args
        assert vars(copied_error).keys() == vars(error).keys()
        for name, value in vars(error).items():
            if isinstance(value, NeonError):
                assert str(getattr(copied_error, name)) == str(value)
            else:
                assert getattr(copied_error, name) == value


def test_pickle_keeps_the_result() -> None:
    error = failed()
    error.result = OperationsResponse(operations=[operation()])
    assert pickle.loads(pickle.dumps(error)).result == error.result


def test_copied_result_hides_its_password() -> None:
    content = {
        "branch": branch_json(),
        "operations": [operation_json()],
        "connection_uris": [],
        "roles": [
            {
                "branch_id": "br-1",
                "name": "owner",
                "password": "hunter2",
                "created_at": "2026-01-01T00:00:00Z",
                "updated_at": "2026-01-01T00:00:00Z",
            }
        ],
    }
    error = failed()
    error.result = msgspec.convert(content, BranchCreated, dec_hook=decode_hook)
    assert copy.deepcopy(error).result == error.result
    assert "hunter2" not in f"{error} {error!r} {error.result}"


def test_result_is_none_by_default() -> None:
    assert [error for error in EVERY_ERROR if error.result is not None] == []


def test_failed_wait_lists_all_operations() -> None:
    error = failed()
    assert [record.id for record in error.failed] == ["op-0"]
    assert [record.id for record in error.settled] == ["op-succeeded", "op-0"]
    assert [record.id for record in error.pending] == ["op-pending"]
    assert str(error).startswith("1 of 3 operations failed: create_branch op-0 of branch br-")
    assert str(error).endswith(" is failed")


def test_failed_wait_shows_the_error_of_the_operation() -> None:
    fields = {"error": "out of capacity", "branch_id": None}
    unsuccessful = msgspec.structs.replace(operation("op-1", "error"), **fields)
    error = OperationFailedError(failed=[unsuccessful], settled=[unsuccessful], pending=[])
    assert str(error).endswith("op-1 in late-frost-12345678 is error: out of capacity")


def test_timed_out_wait_lists_pending_operations_and_last_error() -> None:
    error = timed_out(last_error=api_error(503))
    assert [record.id for record in error.pending] == ["op-0"]
    assert [record.id for record in error.settled] == ["op-succeeded"]
    assert isinstance(error.last_error, ServerError)
    start = "1 of 2 operations did not finish within 2.5 s: op-0 in p-1"
    assert str(error) == f"{start}; last error: {api_error(503)}"


def test_state_that_was_not_reached_is_shown_with_the_pending_operations() -> None:
    error = never_ready()
    start, end = str(error).split("; pending: create_branch op-pending of branch ")
    assert start.endswith("not become 'ready' within 2.5 s: it is 'init', changing to 'ready'")
    assert end == "br-quiet-sun-87654321 in late-frost-12345678 is running"
    assert (error.wanted, error.state, error.pending_state) == ("ready", "init", "ready")
    assert [record.id for record in error.settled] == ["op-succeeded"]
    unread = never_ready(state=None, pending_state=None, pending=[], last_error=api_error(503))
    assert "within 2.5 s: its state could not be read; last error: POST /projects" in str(unread)


@pytest.mark.parametrize(
    ("timeout", "shown"),
    [(29.9844, "30"), (300, "300"), (1.25, "1.2"), (0.0512, "0.051"), (0, "0"), (86400.0, "86400")],
)
def test_timeout_is_shown_without_needless_digits(timeout: float, shown: str) -> None:
    assert f"did not become 'ready' within {shown} s: " in str(never_ready(timeout=timeout))


@pytest.mark.parametrize(("count", "listed", "more"), [(3, 3, ""), (4, 3, "1"), (500, 3, "497")])
def test_message_shortens_long_lists_but_attributes_do_not(
    count: int, listed: int, more: str
) -> None:
    for error, complete in ((e := failed(count), e.failed), (t := timed_out(count), t.pending)):
        assert len(complete) == count
        assert len(re.findall(r"op-\d+", str(error))) == listed
        assert (f" and {more} more" in str(error)) is bool(more)
        assert len(str(error)) < 400


def test_error_copies_its_lists() -> None:
    pending = [operation("op-1")]
    error = WaitTimeoutError(timeout=1, settled=[], pending=pending, last_error=None)
    pending.clear()
    assert len(error.pending) == 1


@pytest.mark.parametrize("status", [199, 302, 408, 500, 502, 504, 520])
def test_ambiguous_status_means_maybe_delivered(status: int) -> None:
    error = APIError.for_status(status)(status=status, message="no", method="POST", path="/p")
    assert error.maybe_delivered
    assert "may have executed" in str(error)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422, 423, 429, 501, 503])
def test_rejected_request_was_not_delivered(status: int) -> None:
    error = APIError.for_status(status)(status=status, message="no", method="POST", path="/p")
    assert not error.maybe_delivered
    assert "may have executed" not in str(error)


def test_unreadable_success_means_maybe_delivered() -> None:
    def unreadable(method: str) -> InvalidResponseError:
        return InvalidResponseError(
            "cut off", method=method, path="/p", status=201, request_id="r", excerpt="{"
        )

    assert unreadable("POST").maybe_delivered
    assert "may have executed" in str(unreadable("POST"))
    assert "may have executed" not in str(unreadable("GET"))


def test_error_of_many_computes_names_some_of_them() -> None:
    error = not_connectable(others=[f"ep-{number}" for number in range(2, 202)])
    assert str(error).endswith(
        "Connection refused; nor are "
        + ", ".join(f"ep-{number}" for number in range(2, 12))
        + " and 190 more"
    )
    assert len(error.others) == 200
