"""The command: its output, its exit, and its data after a kill."""

import asyncio
import signal
import socket
import sys
from pathlib import Path

import aiohttp
import msgspec
import pytest
from yarl import URL

from control_plane.tests.client import Http
from control_plane.tests.raw import reply_to
from neonctl_async import NeonClient
from neonctl_local.__main__ import main
from neonctl_local.arguments import new_parser
from neonctl_local.server.faults import FailNext
from tests.support.postgres import skip_without_postgres
from tests.support.server_process import serving

pytestmark = pytest.mark.process


async def test_every_start_prints_two_lines_to_paste_and_all_their_keys_stay_valid(
    tmp_path: Path,
) -> None:
    data = ("--data", str(tmp_path / "plane.db"))
    async with serving(*data) as served, Http(served.base_url, served.api_key) as api:
        assert served.base_url.startswith("http://127.0.0.1:")
        assert served.base_url.endswith("/api/v2")
        assert await api.get("/users/me")
        key = served.api_key
        assert (await served.end())[:2] == (0, "")
    async with serving(*data) as served, Http(served.base_url, key) as api:
        assert await api.get("/users/me")
        assert (await api.send("GET", "/users/me", key=served.api_key)).status == 200
        assert (await served.end())[:2] == (0, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.usefixtures("interruptible")
async def test_command_stops_cleanly_when_interrupted(number: signal.Signals) -> None:
    async with serving() as served, Http(served.base_url, served.api_key) as api:
        await api.get("/projects")
        status, _, err = await served.end(number)
    assert status == 0
    assert "GET /api/v2/projects 200" in err
    assert "Traceback" not in err
    assert served.api_key not in err


@pytest.mark.long
async def test_command_started_with_sigint_ignored_keeps_ignoring_it() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        async with serving() as served, Http(served.base_url, served.api_key) as api:
            served.process.send_signal(signal.SIGINT)
            await api.get("/projects")
            status, _, err = await served.end()
    finally:
        signal.signal(signal.SIGINT, before)
    assert status == 0
    assert "GET /api/v2/projects 200" in err


@pytest.mark.long
async def test_command_creates_another_key_on_request(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / "plane.db"), "--create-key", "more")
    for starts in (1, 2):
        async with serving(*data) as served, Http(served.base_url, served.api_key) as api:
            names = [key["name"] for key in await api.get("/api_keys")]
            assert names == ["more"] * starts + ["first key"]
            await served.end()


@pytest.mark.long
async def test_options_configure_the_server() -> None:
    arguments = (
        *("--duration", "0", "--duration-of", "start_compute=1000", "--lock", "project"),
        *("--intervals", '{"suspend_after": 5}', "--quiet", "--no-console"),
        *("--fault", '{"route": "GET /users/me", "status": 503, "times": 1}'),
        *("--fail", '{"action": "create_timeline"}'),
        *("--allow-host", "neon.test", "--allow-host", "b:81", "--connections", '{"head": 0.2}'),
    )
    async with serving(*arguments) as served, Http(served.base_url, served.api_key) as api:
        assert (await api.send("GET", "/users/me")).status == 503
        assert (await api.send("GET", "/users/me")).status == 200
        failed, running = [
            await api.request("POST", "/projects", {"project": {}}) for _ in range(2)
        ]
        assert [op["status"] for op in failed["operations"]] == ["failed", "failed"]
        assert [op["status"] for op in running["operations"]] == ["finished", "running"]
        path = f"/projects/{running['project']['id']}/branches"
        assert (await api.send("POST", path, {})).status == 423
        for host, status in (("neon.test:1", 200), ("b:81", 200), ("b:82", 421)):
            assert (await api.send("GET", "/users/me", headers={"Host": host})).status == status
        async with aiohttp.request("GET", URL(api.base_url).with_path("/console")) as response:
            assert (response.status, response.content_type) == (401, "application/json")
        assert (await reply_to(api, b"GET")).status == 408
        _, _, err = await served.end()
    fault, failure = err.splitlines()
    assert fault.startswith("fired 1 times: Fault(")
    assert failure.startswith("fired 1 times: PlannedFailure(")
    assert "create_timeline" in failure


@pytest.mark.long
async def test_option_requires_an_organization_for_projects() -> None:
    async with serving("--require-org-id") as served, Http(served.base_url, served.api_key) as api:
        await api.expect_error(400, "org_id is required", "GET", "/projects")
        (organization,) = (await api.get("/users/me/organizations"))["organizations"]
        assert await api.project_names(f"?org_id={organization['id']}") == []
        await served.end()


@pytest.mark.long
@pytest.mark.parametrize("options", [(), ("--quiet",)])
async def test_link_of_the_console_is_printed_to_standard_error(options: tuple[str, ...]) -> None:
    async with serving(*options) as served, aiohttp.ClientSession() as http:
        async with http.get(await served.console_url()) as response:
            assert response.status == 200
            assert "Continue to the console" in await response.text()
        _, out, _ = await served.end()
    assert out == ""


@pytest.mark.long
async def test_killed_server_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    arguments = ("--data", str(tmp_path / "plane.db"), "--duration", "1000", "--lock", "none")
    async with serving(*arguments) as served, Http(served.base_url, served.api_key) as api:
        key = (await api.request("POST", "/api_keys", {"key_name": "kept"}))["key"]
        revoked = await api.request("POST", "/api_keys", {"key_name": "revoked"})
        made = await api.request("POST", "/projects", {"project": {}})
        project_id = made["project"]["id"]
        created = await api.branch(project_id, name="kept", compute=True)
        await api.request("DELETE", f"/api_keys/{revoked['id']}")
        await served.kill()
    async with serving(*arguments) as served, Http(served.base_url, key) as api:
        assert (await api.send("GET", "/projects", key=revoked["key"])).status == 401
        branch = await api.get(f"/projects/{project_id}/branches/{created['branch']['id']}")
        assert branch["branch"]["name"] == "kept"
        listed = await api.operations(project_id)
        announced = made["operations"] + created["operations"]
        assert [op["id"] for op in listed] == [op["id"] for op in announced]
        assert {op["status"] for op in listed} == {"running", "scheduling"}


def test_failure_may_hide_its_retry() -> None:
    text = '{"action": "create_branch", "retry_after": 5, "show_retry_at": false}'
    [failure] = new_parser("local").parse_args(["--fail", text]).fail
    assert failure == FailNext(action="create_branch", retry_after=5, show_retry_at=False)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--host", "0.0.0.0"], "--expose"),
        (["--host", "example.com"], "--expose NAME"),
        (["--fault", "{"], "--fault: {: it is not JSON: "),
        (["--fault", '{"route": "x"}'], "route"),
        (["--fail", "{}"], "action"),
        (["--duration-of", "x"], "create_branch=2.5"),
        (["--port", "99999"], "65535"),
        (["--port", "x"], "65535"),
        (["--intervals", '{"unknown": 1}'], "`unknown`; the fields are suspend_after, check"),
        (["--postgres-port", "5432"], "--postgres-port is an option for real databases"),
        (["--postgres-tls"], "add --postgres"),
        (["--no-pooler"], "add --postgres"),
        (["--allow-origin", "http://localhost:3000"], "add --postgres"),
        (["--durable"], "add --data FILE or --postgres"),
        (["--postgres", ""], "--postgres: the path is empty"),
        (["--data", ""], "--data: the path is empty"),
        (["--data", "/"], "--data: '/' is a directory: expected a file"),
        (["--duration", "x"], "--duration: 'x' is not a number of seconds"),
        (["--duration", "-1"], "--duration: '-1' is not a number of seconds"),
        (["--duration-of", "create_branch=x"], "'x' is not a number of seconds"),
        (["--scheduling", "7"], "'7' is not a share from 0 to 1"),
        (["--prot", "80"], "--prot 80. See python -m neonctl_local --help"),
        (["--quiet", "org", "list"], "org list. A command comes first: export"),
    ],
)
def test_invalid_arguments_are_rejected(
    arguments: list[str], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2
    usage, error = capsys.readouterr().err.splitlines()
    assert usage == "usage: python -m neonctl_local [-h] [OPTIONS]"
    assert word in error


@pytest.mark.long
async def test_exposed_address_prints_a_warning() -> None:
    async with serving("--host", "0.0.0.0", "--expose") as served:
        _, _, err = await served.end()
    assert err.count("serving on 0.0.0.0: keys and passwords are sent unencrypted") == 1


@pytest.mark.long
async def test_address_of_a_server_on_all_addresses_can_be_pasted_on_the_same_machine() -> None:
    arguments = ("--host", "0.0.0.0", "--expose")
    async with (
        serving(*arguments) as served,
        NeonClient(served.api_key, base_url=served.base_url) as neon,
    ):
        assert await neon.projects.list().collect() == []
        _, out, _ = await served.end()
    assert out == ""


@pytest.mark.long
async def test_exposed_name_is_printed_with_the_variable_that_allows_http() -> None:
    async with serving("--host", "0.0.0.0", "--expose", "control-plane") as served:
        _, out, _ = await served.end()
    assert served.base_url.startswith("http://control-plane:")
    assert out == "export NEON_ALLOW_HTTP=control-plane\n"


def test_unknown_host_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["--host", "neon.invalid", "--expose", "--port", "0"])
    assert exit_.value.code == 1
    assert "'neon.invalid' is not an address of this machine" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options",
    [
        ("--port",),
        pytest.param(("--port", "0", "--postgres", "--postgres-port"), marks=pytest.mark.postgres),
    ],
)
def test_port_in_use_is_named_with_its_option(
    options: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    if "--postgres" in options:
        skip_without_postgres()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SystemExit) as exit_:
            main([*options, str(port), "--quiet"])
    assert exit_.value.code == 1
    what = f"cannot listen on 127.0.0.1:{port}"
    [line] = capsys.readouterr().err.splitlines()
    assert what in line
    assert line.endswith(f"or choose another port with {options[-1]}")


def test_address_of_another_machine_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["--host", "192.0.2.1", "--expose", "--port", "0", "--quiet"])
    assert exit_.value.code == 1
    assert "'192.0.2.1' is not an address of this machine" in capsys.readouterr().err


def test_startup_error_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(["--data", str(tmp_path / "missing" / "plane.db")])
    assert exit_.value.code == 1
    err = capsys.readouterr().err
    assert ("cannot keep data in" in err, "Traceback" in err) == (True, False)
    assert sys.exc_info() == (None, None, None)


@pytest.mark.long
async def test_json_has_the_addresses_and_the_key() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "neonctl_local", "--port", "0", "--json"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        assert process.stdout is not None
        printed = msgspec.json.decode(await process.stdout.readline())
        async with Http(printed["api_host"], printed["api_key"]) as api:
            assert await api.get("/users/me")
    finally:
        process.terminate()
        await process.wait()
    assert printed["console"].startswith("http://127.0.0.1:")
    assert (printed["fetch_endpoint"], printed["ws_proxy"]) == (None, None)
