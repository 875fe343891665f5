"""Raising the limit of file descriptors."""

import resource
from collections.abc import Iterator

import pytest

from neonctl_local.postgres.servers.descriptors import WANTED, raise_descriptor_limit


@pytest.fixture(autouse=True)
def keep_the_limit() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_low_limit_is_raised_as_far_as_allowed() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    raise_descriptor_limit()
    expected = WANTED if hard == resource.RLIM_INFINITY else min(WANTED, hard)
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == (expected, hard)


def test_sufficient_limit_stays() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    raise_descriptor_limit()
    after = resource.getrlimit(resource.RLIMIT_NOFILE)
    raise_descriptor_limit()
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == after
    assert after[0] >= min(before[0], WANTED)
