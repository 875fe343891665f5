"""One process of a test run performs a step. The other ones get its outcome."""

from concurrent.futures import ThreadPoolExecutor
from typing import NoReturn

import pytest

from pytest_neonctl_async.once import ATTEMPTS, LocalClaims, Outcome, Step, perform_once


def refuse() -> NoReturn:
    raise AssertionError("the step was performed twice")


def raising(error: BaseException) -> Step:
    def step() -> NoReturn:
        raise error

    return step


def test_step_is_performed_once_and_its_result_is_shared() -> None:
    claims = LocalClaims()
    assert perform_once(claims, lambda: Outcome("template")) == "template"
    assert perform_once(claims, refuse) == "template"


def test_process_without_others_repeats_the_step_after_a_success() -> None:
    claims = LocalClaims(is_alone=True)
    assert perform_once(claims, lambda: Outcome("template")) == "template"
    assert perform_once(claims, lambda: Outcome("another")) == "another"
    with pytest.raises(RuntimeError, match="no such table"):
        perform_once(claims, raising(ValueError("no such table")))
    with pytest.raises(RuntimeError, match="no such table"):
        perform_once(claims, refuse)


def test_others_wait_for_the_outcome_of_the_first() -> None:
    claims = LocalClaims()
    assert claims.claim() is None
    with ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(perform_once, claims, refuse) for _ in range(3)]
        assert not any(future.done() for future in waiting)
        claims.record(Outcome("template"))
        assert {future.result() for future in waiting} == {"template"}


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no such table"), "ValueError: no such table"),
        (ValueError("\n no such table\n[SQL: …]"), "ValueError: no such table"),
        (TimeoutError(), "TimeoutError"),
        (pytest.fail.Exception("no driver"), "Failed: no driver"),
        (pytest.skip.Exception("no driver"), "Skipped: no driver"),
        (SystemExit("no driver"), "SystemExit: no driver"),
    ],
)
def test_failed_step_fails_for_everybody_and_is_not_repeated(
    error: BaseException, text: str
) -> None:
    claims = LocalClaims()
    expected = f"the databases of this test run could not be prepared: {text}"
    with pytest.raises(RuntimeError) as first:
        perform_once(claims, raising(error))
    assert first.value.__cause__ is error
    with pytest.raises(RuntimeError) as second:
        perform_once(claims, refuse)
    assert str(first.value) == str(second.value) == expected


def test_interrupted_step_is_performed_by_the_next_process() -> None:
    claims = LocalClaims()
    with pytest.raises(KeyboardInterrupt):
        perform_once(claims, raising(KeyboardInterrupt()))
    assert perform_once(claims, lambda: Outcome("template")) == "template"


def test_step_that_ends_its_processes_fails() -> None:
    claims = LocalClaims()
    for _ in range(ATTEMPTS):
        assert claims.claim() is None
        claims.release()
    with pytest.raises(RuntimeError, match="2 processes ended while they prepared the databases"):
        perform_once(claims, refuse)


def test_claim_of_a_process_that_never_started_is_not_an_attempt() -> None:
    claims = LocalClaims()
    for _ in range(ATTEMPTS):
        assert claims.claim() is None
        claims.release(is_attempt=False)
    assert perform_once(claims, lambda: Outcome("template")) == "template"


def test_error_shows_no_password_of_a_uri() -> None:
    uri = "postgresql://owner:sesame@127.0.0.1:5432/neondb?options=endpoint%3Dep-1"
    with pytest.raises(RuntimeError) as failure:
        perform_once(LocalClaims(), raising(ValueError(f"alembic -x uri={uri} failed: 1@2")))
    assert "sesame" not in str(failure.value)
    assert "uri=postgresql://owner:********@127.0.0.1:5432/neondb?options" in str(failure.value)
