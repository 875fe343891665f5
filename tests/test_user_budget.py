"""The rate budget of a user, which the command line and the pytest plugin share."""

import logging
import os
import stat
from pathlib import Path

import pytest

from neonctl_async import ConfigurationError, RateBudget
from neonctl_async.config import state_folder


@pytest.fixture(autouse=True)
def _state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NEON_RATE_BUDGET", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_budget_is_shared_through_a_file_that_only_the_user_can_read() -> None:
    budget = RateBudget.of_user(fallback_parts=6)
    assert budget.store is not None
    assert budget.store.path.name == "rate-budget.db"
    assert budget.store.fallback_parts == 6
    assert budget.per_minute == 700
    if os.name == "posix":
        assert stat.S_IMODE(budget.store.path.parent.stat().st_mode) == 0o700


def test_budget_can_be_turned_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEON_RATE_BUDGET", "off")
    assert RateBudget.of_user() == RateBudget()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8080/api/v2", "http://localhost", "http://[::1]"]
)
def test_budget_for_a_server_on_this_machine_is_not_shared(tmp_path: Path, url: str) -> None:
    assert RateBudget.of_user(url) == RateBudget()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", ["sqlite:///other.db", "redis://cache.example/1"])
def test_variable_names_another_store(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEON_RATE_BUDGET", url)
    for budget in (RateBudget.of_user(), RateBudget.of_user("http://localhost")):
        assert budget.store is not None
        assert budget.store.name == url


def test_wrong_url_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEON_RATE_BUDGET", "yes")
    with pytest.raises(ConfigurationError, match=r"NEON_RATE_BUDGET: .* has no scheme: .* or off"):
        RateBudget.of_user()


def test_folder_that_cannot_be_created_leaves_the_budget_unshared(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert RateBudget.of_user() == RateBudget()
    assert "the rate budget is not shared with other programs" in caplog.text
    assert {record.levelno for record in caplog.records} == {logging.INFO}


def test_folder_that_cannot_be_written_leaves_the_budget_unshared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_path: Path, _mode: int) -> bool:
        return False

    monkeypatch.setattr(os, "access", refuse)
    assert RateBudget.of_user() == RateBudget()


def test_user_without_a_home_directory_has_an_unshared_budget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setattr(Path, "home", fail)
    assert RateBudget.of_user() == RateBudget()


def test_state_folder_follows_the_conventions_of_the_operating_system() -> None:
    home = Path.home()
    assert state_folder({}, "linux") == home / ".local/state/neonctl-async"
    assert state_folder({"XDG_STATE_HOME": "relative"}, "linux") == state_folder({}, "linux")
    assert state_folder({"XDG_STATE_HOME": "/state"}, "linux") == Path("/state/neonctl-async")
    assert state_folder({}, "darwin") == home / "Library/Application Support/neonctl-async"
    assert state_folder({}, "win32") == home / "AppData/Local/neonctl-async"
    assert state_folder({"LOCALAPPDATA": "C:/local"}, "win32") == Path("C:/local/neonctl-async")
