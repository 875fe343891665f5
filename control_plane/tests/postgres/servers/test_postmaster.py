import asyncio
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from neonctl_local.postgres.account import ServerAccount
from neonctl_local.postgres.binaries import Installation
from neonctl_local.postgres.copying import copy_cluster
from neonctl_local.postgres.errors import ClusterError
from neonctl_local.postgres.servers import postmaster as postmaster_module
from neonctl_local.postgres.servers.postmaster import Postmaster, identity, options
from neonctl_local.postgres.template import Template
from tests.support.clusters import files, open_descriptors
from tests.support.until import until

pytestmark = pytest.mark.postgres


@pytest.fixture
async def data(
    open_directory: Path, template: Template, account: ServerAccount | None
) -> AsyncIterator[Path]:
    """A data directory whose servers leave no descriptor open."""
    descriptors = await open_descriptors()
    data = open_directory / "data"
    await asyncio.to_thread(partial(copy_cluster, template.directory, data, account=account))
    yield data
    assert await open_descriptors() <= descriptors


class Exits(list[str]):
    """The reasons of unexpected ends."""


@pytest.fixture
def exits() -> Exits:
    return Exits()


@pytest.fixture
def server(
    data: Path, installation: Installation, account: ServerAccount | None, exits: Exits
) -> Postmaster:
    return make(data, installation, account, exits)


def make(
    data: Path,
    installation: Installation,
    account: ServerAccount | None,
    exits: Exits,
    **settings: str,
) -> Postmaster:
    program = installation.program("postgres")
    fixed = options(data, 1, durable=False) | settings
    return Postmaster(program, data, fixed, account, exits.append)


async def test_server_starts_and_stops(server: Postmaster, data: Path, exits: Exits) -> None:
    await server.start()
    assert server.pid is not None
    assert ".s.PGSQL.1" in await files(data, ".s.PGSQL.?")
    await server.stop()
    assert server.pid is None
    assert server.exited
    assert await files(data, "postmaster.pid") == []
    await server.stop()
    assert exits == []


async def test_immediate_stop_needs_no_checkpoint(server: Postmaster, data: Path) -> None:
    await server.start()
    await server.stop(immediately=True)
    assert await files(data, "postmaster.pid") == []


@pytest.mark.parametrize("pidfds", [True, False])
async def test_unexpected_end_is_reported_with_its_reason(
    server: Postmaster, exits: Exits, pidfds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not pidfds:
        monkeypatch.setattr(sys, "platform", "unknown")
    await server.start()
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    await until(lambda: bool(exits))
    assert exits[0].startswith("The Postgres server ended unexpectedly (killed by signal 9): LOG:")
    assert server.exited


async def test_refused_option_is_in_the_error(
    data: Path, installation: Installation, account: ServerAccount | None, exits: Exits
) -> None:
    server = make(data, installation, account, exits, no_such_option="1")
    with pytest.raises(ClusterError, match=r"did not start \(exit status 1\): .*no_such_option"):
        await server.start()
    assert exits == []


async def test_missing_program_is_an_error(
    data: Path, account: ServerAccount | None, exits: Exits
) -> None:
    server = Postmaster(data / "nowhere", data, {}, account, exits.append)
    with pytest.raises(ClusterError, match=r"Postgres cannot be started: .*nowhere"):
        await server.start()
    await server.stop()


def no_launcher(_account: ServerAccount | None) -> tuple[str, ...]:
    return ()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.parametrize("has_setpriv", [True, False])
async def test_server_has_only_the_rights_of_its_account(
    server: Postmaster,
    account: ServerAccount | None,
    monkeypatch: pytest.MonkeyPatch,
    *,
    has_setpriv: bool,
) -> None:
    if account is None:
        pytest.skip("needs root, who starts servers as another user")
    if not has_setpriv:
        monkeypatch.setattr(postmaster_module, "launcher", no_launcher)
    await server.start()
    status = await asyncio.to_thread(Path(f"/proc/{server.pid}/status").read_text)
    await server.stop()
    found = {
        name: value.split() for name, _, value in (x.partition(":") for x in status.splitlines())
    }
    assert found["Uid"] == [f"{account.uid}"] * 4
    assert found["Gid"] == [f"{account.gid}"] * 4
    assert found["Groups"] == []
    assert int(found["CapEff"][0], 16) == int(found["CapPrm"][0], 16) == 0


def test_setpriv_without_the_options_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "setpriv"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}", prepend=os.pathsep)
    assert postmaster_module.launcher(ServerAccount(5, 6, "unknown")) == ()


async def test_server_that_does_not_become_ready_is_stopped(
    data: Path, exits: Exits, open_directory: Path
) -> None:
    program = open_directory / "postgres"
    await asyncio.to_thread(program.write_text, "#!/bin/sh\necho waiting >&2\nexec sleep 60\n")
    await asyncio.to_thread(program.chmod, 0o755)
    server = Postmaster(program, data, {}, None, exits.append)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postmaster_module, "START_TIME", 0.1)
        with pytest.raises(ClusterError, match=r"did not accept connections .* 0.1 s: waiting"):
            await server.start()
    assert server.exited


async def test_server_that_ignores_signals_is_killed(
    data: Path, exits: Exits, open_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postmaster_module, "FAST_TIME", 0.05)
    monkeypatch.setattr(postmaster_module, "IMMEDIATE_TIME", 0.05)
    program = open_directory / "postgres"
    ready = postmaster_module.READY
    text = f"#!/bin/sh\ntrap '' INT QUIT\necho '{ready}' >&2\nwhile :; do sleep 0.1; done\n"
    await asyncio.to_thread(program.write_text, text)
    await asyncio.to_thread(program.chmod, 0o755)
    server = Postmaster(program, data, {}, None, exits.append)
    await server.start()
    await server.stop()
    assert server.exited
    assert exits == []


@pytest.mark.parametrize("delay", [0, 0.002, 0.01])
async def test_cancelled_start_leaves_no_process(server: Postmaster, delay: float) -> None:
    starting = asyncio.create_task(server.start())
    await asyncio.sleep(delay)
    starting.cancel()
    await asyncio.wait([starting])
    assert starting.cancelled()
    assert server.pid is None


async def test_cancelled_stop_is_immediate_but_complete(server: Postmaster) -> None:
    await server.start()
    stopping = asyncio.create_task(server.stop())
    await asyncio.sleep(0)
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    assert server.exited


def test_log_of_a_server_is_bounded_and_has_no_statement() -> None:
    fixed = options(Path("/nowhere"), 1, durable=True)
    assert fixed["log_min_error_statement"] == "panic"
    assert fixed["log_statement"] == "none"
    assert fixed["fsync"] == "on"
    log = postmaster_module.ServerLog()
    assert not log.feed(b"x" * 1_000_000)
    assert not log.feed(b"\nsecond\nthi")
    assert log.feed(b"rd\nLOG:  database system is ready to accept connections\n")
    assert log.reason() == f"second; third; LOG: {postmaster_module.READY}"


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([], "its log is empty"),
        (["LOG:  a"], "LOG: a"),
        (["LOG:  a", "FATAL:  b", "LOG:  c", "LOG:  d"], "LOG: a; FATAL: b"),
        (["PANIC:  a", "LOG:  b", "LOG:  c", "LOG:  d"], "PANIC: a"),
    ],
)
def test_reason_of_a_failure_is_the_last_severe_message(lines: list[str], reason: str) -> None:
    log = postmaster_module.ServerLog()
    log.feed("".join(f"{line}\n" for line in lines).encode())
    assert log.reason() == reason


def test_loop_may_run_in_any_thread(
    data: Path, installation: Installation, account: ServerAccount | None, exits: Exits
) -> None:
    async def run() -> None:
        server = make(data, installation, account, exits)
        await server.start()
        await server.stop()
        assert server.exited
        done.set()

    done = threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    thread.join()
    assert done.is_set()


def test_program_has_only_the_group_of_its_account() -> None:
    assert identity(None) == (None, None, None)
    assert identity(ServerAccount(5, 6, "postgres")) == (5, 6, ())
