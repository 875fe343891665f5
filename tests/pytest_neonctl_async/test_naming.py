"""Branch names show which run and which worker created them."""

import pytest

from pytest_neonctl_async.naming import (
    LIFETIME_SECONDS,
    RUN_LIFETIME_SECONDS,
    is_parent,
    lifetime_seconds,
    parent_prefix,
    run_prefix,
    shared_prefix,
    worker_prefix,
)


@pytest.mark.parametrize("worker", ["gw0", "main"])
def test_prefix_of_a_worker_starts_with_the_prefix_of_its_run(
    monkeypatch: pytest.MonkeyPatch, worker: str
) -> None:
    if worker == "main":
        monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    else:
        monkeypatch.setenv("PYTEST_XDIST_WORKER", worker)
    assert worker_prefix("0a0a0a0a") == f"{run_prefix('0a0a0a0a')}{worker}"
    assert run_prefix("0a0a0a0a") == "neonctl-pytest-0a0a0a0a-"


def test_name_shows_the_parent_of_all_branches() -> None:
    name = f"{parent_prefix('0a0a0a0a')}31070c37e70c"
    assert is_parent(name)
    assert lifetime_seconds(name) == RUN_LIFETIME_SECONDS
    assert name.startswith(run_prefix("0a0a0a0a"))
    assert not is_parent(f"{worker_prefix('0a0a0a0a')}-31070c37e70c")
    assert not is_parent("my-parent-branch")


def test_shared_branches_live_longer_than_those_of_one_test() -> None:
    prefix = worker_prefix("0a0a0a0a")
    assert lifetime_seconds(f"{shared_prefix(prefix)}-31070c37e70c") == RUN_LIFETIME_SECONDS
    assert lifetime_seconds(f"{prefix}-31070c37e70c") == LIFETIME_SECONDS
