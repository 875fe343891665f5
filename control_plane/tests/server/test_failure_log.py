"""Failures that a loop repeats are logged once."""

import asyncio
import logging

import pytest

from neonctl_local.errors import StorageFullError
from neonctl_local.postgres.errors import ClusterError, DiskFullError
from neonctl_local.server.failure_log import FailureLog


def test_failures_of_a_kind_are_logged_once_until_one_attempt_succeeds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    failures = FailureLog(logging.getLogger(__name__), "the check failed")
    for error in (
        *(DiskFullError("full"), DiskFullError("full again"), ClusterError("no server")),
        *(ValueError("a defect"), ValueError("a defect"), StorageFullError("is full"), None, None),
        DiskFullError("full later"),
    ):
        with failures:
            if error is not None:
                raise error
    assert [
        (record.levelname, record.getMessage(), bool(record.exc_info)) for record in caplog.records
    ] == [
        ("WARNING", "the check failed: full", False),
        ("WARNING", "the check failed: no server", False),
        ("ERROR", "the check failed", True),
        ("INFO", "the check failed: it succeeds again", False),
        ("WARNING", "the check failed: full later", False),
    ]


def test_cancellation_passes_through() -> None:
    with (
        pytest.raises(asyncio.CancelledError),
        FailureLog(logging.getLogger(__name__), "the check failed"),
    ):
        raise asyncio.CancelledError
