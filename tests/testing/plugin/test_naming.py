"""Branch names show which run and which worker created them."""

import pytest

from neonctl_async.testing.plugin.naming import (
    is_parent,
    parent_prefix,
    run_prefix,
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
    assert name.startswith(run_prefix("0a0a0a0a"))
    assert not is_parent(f"{worker_prefix('0a0a0a0a')}-31070c37e70c")
    assert not is_parent("my-parent-branch")
