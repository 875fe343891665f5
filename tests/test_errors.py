"""The exception tree."""

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
    NeonError,
    NotFoundError,
    OperationFailedError,
    OperationRef,
    PermissionDeniedError,
    RateLimitedError,
    RequestTimeoutError,
    ServerError,
    TransportError,
    WaitError,
    WaitTimeoutError,
    errors,
)
from neonctl_async.models.secret import decode_hook
from neonctl_async.types import BranchCreated
from tests.support.records import branch_json, operation, operation_json

Line = tuple[int, str, str | None]


def drawn() -> list[Line]:
    """Depth, class and further base of each line of the tree in the docstring."""
    pattern = re.compile(r"^ {4}([│ ├└─]*)([A-Z]\w+)(?: \(also (\w+)\))?", re.MULTILINE)
    return [
        (len(indent) // 4, name, also or None)
        for indent, name, also in pattern.findall(errors.__doc__ or "")
    ]


def real(kind: type[NeonError] = NeonError, depth: int = 0) -> Iterator[Line]:
    """The same, of the classes as they are."""
    also = ", ".join(base.__name__ for base in kind.__bases__[1:])
    yield depth, kind.__name__, also or None
    for child in kind.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from real(child, depth + 1)


def api_error(status: int = 409, **more: Any) -> APIError:
    told: dict[str, Any] = {"message": "busy", "method": "POST", "path": "/projects", **more}
    return APIError.for_status(status)(status=status, **told)


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
    again: NeonError = pickle.loads(pickle.dumps(error))
    return again


def failed(count: int = 1) -> OperationFailedError:
    bad = [operation(f"op-{number}", "failed") for number in range(count)]
    good = operation("op-good", "finished")
    return OperationFailedError(failed=bad, settled=[good, *bad], pending=[operation("op-late")])


def timed_out(count: int = 1, last_error: NeonError | None = None) -> WaitTimeoutError:
    late = [OperationRef(project_id="p-1", id=f"op-{number}") for number in range(count)]
    return WaitTimeoutError(
        timeout=2.5, settled=[operation("op-good", "finished")], pending=late, last_error=last_error
    )


EVERY_ERROR: list[NeonError] = [
    NeonError("it went wrong"),
    ConfigurationError("no API key"),
    ClientClosedError("the client is closed"),
    *(api_error(status) for status in (400, 401, 403, 404, 409, 423, 429, 500, 502)),
    api_error(429, retry_after=1.5, code="SLOW", request_id="req-1"),
    transport_error(TransportError, maybe_delivered=True),
    transport_error(ConnectionFailedError, maybe_delivered=False),
    transport_error(ConnectionLostError, maybe_delivered=True),
    transport_error(RequestTimeoutError, maybe_delivered=True),
    invalid_response(),
    WaitError("it ended", settled=[], pending=[]),
    failed(),
    timed_out(),
    timed_out(last_error=api_error(503)),
]


def test_the_tree_is_what_the_docstring_draws() -> None:
    assert drawn() == list(real())


def test_every_error_is_public() -> None:
    names = {name for name, _ in inspect.getmembers(errors, inspect.isclass)}
    own = {name for name in names if getattr(errors, name).__module__ == errors.__name__}
    assert own <= set(neonctl_async.__all__)


def test_every_class_is_covered_here() -> None:
    assert {type(error).__name__ for error in EVERY_ERROR} >= {name for _, name, _ in real()} - {
        "APIError"
    }


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (302, APIError),
        (400, APIError),
        (401, AuthenticationError),
        (403, PermissionDeniedError),
        (404, NotFoundError),
        (408, APIError),
        (409, ConflictError),
        (422, APIError),
        (423, LockedError),
        (429, RateLimitedError),
        (499, APIError),
        (500, ServerError),
        (503, ServerError),
        (599, ServerError),
    ],
)
def test_each_status_has_its_class(status: int, kind: type[APIError]) -> None:
    assert APIError.for_status(status) is kind
    assert type(api_error(status)) is kind


def test_an_api_error_says_what_was_asked_and_answered() -> None:
    error = api_error(409, message="name taken", code="TAKEN", request_id="req-1")
    assert str(error) == "POST /projects: 409 Conflict: name taken (request req-1)"
    assert (error.status, error.code, error.message) == (409, "TAKEN", "name taken")
    assert (error.method, error.path, error.request_id) == ("POST", "/projects", "req-1")
    assert error.retry_after is None


def test_without_a_request_id_none_is_shown() -> None:
    assert str(api_error(409)) == "POST /projects: 409 Conflict: busy"


def test_an_unknown_status_is_said_to_be_one() -> None:
    assert str(api_error(499)) == "POST /projects: 499 unknown status: busy"


@pytest.mark.parametrize(
    ("maybe_delivered", "fate"), [(True, "may have been carried out"), (False, "nothing was sent")]
)
def test_a_transport_error_tells_the_fate_of_the_request(maybe_delivered: bool, fate: str) -> None:
    error = transport_error(ConnectionLostError, maybe_delivered=maybe_delivered)
    assert str(error).startswith("POST /projects: no connection; ")
    assert fate in str(error)
    assert "req-1" in str(error)
    assert error.maybe_delivered is maybe_delivered


def test_an_invalid_response_shows_where_it_begins() -> None:
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
def test_some_are_builtin_errors_too(error: NeonError, builtin: type[Exception]) -> None:
    with pytest.raises(builtin):
        raise error


@pytest.mark.parametrize("error", EVERY_ERROR, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled])
def test_copies_and_pickles_say_the_same(
    error: NeonError, copied: Callable[[NeonError], NeonError]
) -> None:
    again = copied(error)
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert again.args == error.args
    assert vars(again).keys() == vars(error).keys()
    for name, value in vars(error).items():
        if isinstance(value, NeonError):
            assert str(getattr(again, name)) == str(value)
        else:
            assert getattr(again, name) == value


def test_the_result_survives_a_copy() -> None:
    error = failed()
    error.result = {"branch": "br-1"}
    assert pickle.loads(pickle.dumps(error)).result == {"branch": "br-1"}


def test_a_result_that_holds_a_password_is_copied_but_does_not_show() -> None:
    shown = {
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
    error.result = msgspec.convert(shown, BranchCreated, dec_hook=decode_hook)
    assert copy.deepcopy(error).result == error.result
    assert "hunter2" not in f"{error} {error!r} {error.result}"


@pytest.mark.parametrize("error", EVERY_ERROR, ids=lambda error: type(error).__name__)
def test_no_error_has_a_result_of_its_own(error: NeonError) -> None:
    assert error.result is None


def test_a_failed_wait_says_everything() -> None:
    error = failed()
    assert [one.id for one in error.failed] == ["op-0"]
    assert [one.id for one in error.settled] == ["op-good", "op-0"]
    assert [one.id for one in error.pending] == ["op-late"]
    assert str(error).startswith("1 of 3 operations ended unsuccessfully: create_branch op-0 in ")
    assert str(error).endswith(" is failed")


def test_a_failed_wait_says_why() -> None:
    bad = msgspec.structs.replace(operation("op-1", "error"), error="out of capacity")
    error = OperationFailedError(failed=[bad], settled=[bad], pending=[])
    assert str(error).endswith("op-1 in late-frost-12345678 is error: out of capacity")


def test_a_timed_out_wait_says_everything() -> None:
    error = timed_out(last_error=api_error(503))
    assert [one.id for one in error.pending] == ["op-0"]
    assert [one.id for one in error.settled] == ["op-good"]
    assert isinstance(error.last_error, ServerError)
    assert "1 of 2 operations had not ended after 2.5 s: op-0 in p-1" in str(error)
    assert str(error).endswith(f"last error: {api_error(503)}")


@pytest.mark.parametrize(("count", "shown", "more"), [(3, 3, ""), (4, 3, "1"), (500, 3, "497")])
def test_long_lists_are_shortened_in_the_message_alone(count: int, shown: int, more: str) -> None:
    for error, whole in ((e := failed(count), e.failed), (t := timed_out(count), t.pending)):
        assert len(whole) == count
        assert len(re.findall(r"op-\d+", str(error))) == shown
        assert (f" and {more} more" in str(error)) is bool(more)
        assert len(str(error)) < 400


def test_an_error_keeps_its_own_lists() -> None:
    pending = [operation("op-1")]
    error = WaitTimeoutError(timeout=1, settled=[], pending=pending, last_error=None)
    pending.clear()
    assert len(error.pending) == 1


@pytest.mark.parametrize("status", [199, 302, 408, 500, 501, 502, 504, 520])
def test_an_answer_that_leaves_open_what_was_done_says_so(status: int) -> None:
    error = APIError.for_status(status)(status=status, message="no", method="POST", path="/p")
    assert error.maybe_delivered
    assert "may have been carried out" in str(error)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422, 423, 429, 503])
def test_an_answer_that_refuses_says_that_nothing_was_done(status: int) -> None:
    error = APIError.for_status(status)(status=status, message="no", method="POST", path="/p")
    assert not error.maybe_delivered
    assert "may have been" not in str(error)


def test_an_answer_of_success_that_cannot_be_read_says_that_it_may_have_been_done() -> None:
    def unreadable(method: str) -> InvalidResponseError:
        return InvalidResponseError(
            "cut off", method=method, path="/p", status=201, request_id="r", excerpt="{"
        )

    assert unreadable("POST").maybe_delivered
    assert "may have been carried out" in str(unreadable("POST"))
    assert "may have been" not in str(unreadable("GET"))
