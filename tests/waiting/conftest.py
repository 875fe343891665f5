"""The chance of these tests."""

import random

import pytest


@pytest.fixture(autouse=True)
def same_jitter_in_each_run() -> None:
    """Polls have jitter: in some runs, a wait would miss a bound that most of them meet."""
    random.seed(17)
