"""The example of a web application in which each tenant has its own database."""

import asyncio
import os
import re
import sys
import tempfile
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from asyncpg import InternalClientError, Record
from fastapi import FastAPI
from tenants.app import Services, create_app
from tenants.branches import TenantBranches
from tenants.pools import TenantPools

from neonctl_async import ConnectionUri, NeonClient
from neonctl_local import Durations, Fault, LocalControlPlane
from neonctl_local.postgres.copying import remove
from tests.support.databases import databases
from tests.support.examples import EXAMPLES
from tests.support.pages import TEXTS, code_blocks
from tests.support.postgres import CACHE, skip_without_postgres
from tests.support.records import API_KEY, PROJECT
from tests.support.until import until


async def use(control_plane: LocalControlPlane, neon: NeonClient, patch: pytest.MonkeyPatch) -> str:
    """Let the application use a control plane. Return the id of its project."""
    project = await neon.projects.create(name="tenants", wait=True)
    patch.setenv("NEON_API_KEY", control_plane.api_key)
    patch.setenv("NEON_API_HOST", control_plane.base_url)
    patch.setenv("NEON_PROJECT_ID", project.project.id)
    return project.project.id


class RealProject(NamedTuple):
    """The project of the application, on a control plane with real databases."""

    control_plane: LocalControlPlane
    neon: NeonClient
    id: str


@asynccontextmanager
async def worker(app: FastAPI | None = None) -> AsyncGenerator[httpx.AsyncClient]:
    """Run a worker with its lifespan, and open a client of it."""
    app = app or create_app()
    async with app.router.lifespan_context(app), client_of_app(app) as http:
        yield http


@asynccontextmanager
async def worker_with(
    connection_uri: Callable[[str], Awaitable[ConnectionUri]],
) -> AsyncGenerator[httpx.AsyncClient]:
    """Run a worker without a project, whose connection URIs come from ``connection_uri``."""
    app = create_app()
    async with (
        NeonClient(API_KEY) as neon,
        TenantPools(connection_uri) as pools,
        client_of_app(app) as http,
    ):
        app.state.services = Services(TenantBranches(neon, PROJECT), pools)
        yield http


def client_of_app(app: FastAPI) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://app")


@pytest.fixture
async def project_id(
    control_plane: LocalControlPlane, neon: NeonClient, monkeypatch: pytest.MonkeyPatch
) -> str:
    """The project of the application, whose databases are emulated."""
    return await use(control_plane, neon, monkeypatch)


@pytest.fixture
async def real_project(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RealProject]:
    """The project of the application, on a control plane with real databases."""
    await asyncio.to_thread(skip_without_postgres)
    monkeypatch.setenv("XDG_CACHE_HOME", CACHE)
    async with databases() as (control_plane, neon):
        yield RealProject(control_plane, neon, await use(control_plane, neon, monkeypatch))


async def status_of(http: httpx.AsyncClient, method: str, path: str, **options: str) -> int:
    note = options.get("note")
    response = await http.request(
        method, f"/tenants/{path}", json=None if note is None else {"text": note}
    )
    return response.status_code


async def until_closed(app: FastAPI) -> None:
    """Wait until a worker knows that its connections are closed. Before, it may send a 503."""
    pools = app.state.services.pools._pools  # noqa: SLF001 - asyncpg reports no event for it
    await until(lambda: all(pool._pool.get_size() == 0 for pool in pools.values()))  # noqa: SLF001 - as above


async def notes_of(http: httpx.AsyncClient, tenant: str) -> list[str]:
    response = await http.get(f"/tenants/{tenant}/notes")
    assert response.status_code == 200, response.text
    notes: list[str] = response.json()
    return notes


@pytest.mark.postgres
@pytest.mark.usefixtures("real_project")
async def test_each_tenant_has_its_own_data() -> None:
    async with worker() as http:
        for tenant in ("acme", "globex"):
            assert await status_of(http, "PUT", tenant) == 201
            assert await status_of(http, "POST", f"{tenant}/notes", note=tenant) == 201
        assert await status_of(http, "PUT", "acme") == 200
        assert await status_of(http, "POST", "acme/notes", note="a NUL: \0") == 422
        assert await notes_of(http, "acme") == ["acme"]
        assert (await http.get("/tenants")).json() == ["acme", "globex"]

        for _ in range(2):
            assert await status_of(http, "DELETE", "acme") == 204
        assert await status_of(http, "GET", "acme/notes") == 404
        assert await notes_of(http, "globex") == ["globex"]
        assert await status_of(http, "PUT", "acme") == 201
        assert await notes_of(http, "acme") == []


@pytest.mark.postgres
@pytest.mark.usefixtures("real_project")
async def test_worker_notices_that_another_one_deleted_or_replaced_a_tenant() -> None:
    app = create_app()
    async with worker(app) as first, worker() as second:
        assert await status_of(first, "PUT", "acme") == 201
        assert await status_of(first, "POST", "acme/notes", note="old") == 201
        assert await notes_of(second, "acme") == ["old"]

        assert await status_of(second, "DELETE", "acme") == 204
        await until_closed(app)
        assert await status_of(first, "GET", "acme/notes") == 404
        for _ in range(2):
            assert await status_of(second, "PUT", "acme") == 201
            assert await notes_of(first, "acme") == []
            assert await status_of(second, "DELETE", "acme") == 204
            await until_closed(app)


@pytest.mark.postgres
async def test_simultaneous_sign_ups_create_one_branch(real_project: RealProject) -> None:
    async with AsyncExitStack() as stack:
        workers = [await stack.enter_async_context(worker()) for _ in range(3)]
        sign_ups = [status_of(http, "PUT", "acme") for http in workers * 3]
        statuses = await asyncio.gather(*sign_ups)
    assert sorted(statuses) == [200] * 8 + [201]
    branches = await real_project.neon.branches.list(real_project.id).collect()
    assert sorted(branch.name for branch in branches) == ["main", "tenant/acme"]


@pytest.mark.postgres
async def test_first_requests_of_a_tenant_share_a_pool(real_project: RealProject) -> None:
    async with worker() as http:
        await http.put("/tenants/acme")
    before = real_project.control_plane.requests_served
    async with worker() as http:
        reads = await asyncio.gather(*(notes_of(http, "acme") for _ in range(20)))
    assert reads == [[]] * 20
    assert real_project.control_plane.requests_served - before == 3


@pytest.mark.postgres
async def test_suspended_compute_starts_for_a_request(real_project: RealProject) -> None:
    _, neon, project_id = real_project
    app = create_app()
    async with worker(app) as http:
        assert await status_of(http, "PUT", "acme") == 201
        assert await status_of(http, "POST", "acme/notes", note="kept") == 201
        for compute in await neon.endpoints.list(project_id):
            await neon.endpoints.suspend(project_id, compute.id, wait=True)
        await until_closed(app)
        assert await notes_of(http, "acme") == ["kept"]


@pytest.mark.postgres
async def test_request_that_waits_for_a_connection_outlives_its_pool(
    real_project: RealProject,
) -> None:
    _, neon, project_id = real_project
    branches = TenantBranches(neon, project_id)
    await branches.ensure("acme")
    async with TenantPools(branches.connection_uri) as pools:

        async def read() -> list[Record]:
            async with pools.connection("acme") as connection:
                await connection.execute("SELECT pg_sleep(0.05)")
                return await connection.fetch("SELECT text FROM notes")

        reading = [asyncio.create_task(read()) for _ in range(12)]  # five of them at a time
        await reading[0]
        pools.discard("acme")
        assert await asyncio.gather(*reading) == [[]] * 12


@pytest.mark.parametrize(
    ("status", "expected"),
    [(401, (502, None)), (422, (502, None)), (500, (503, "5")), (409, (409, None))],
)
async def test_errors_of_neon_become_responses(
    control_plane: LocalControlPlane,
    neon: NeonClient,
    project_id: str,
    status: int,
    expected: tuple[int, str | None],
) -> None:
    await neon.branches.create(project_id, name="tenant/acme", wait=True)
    route = "DELETE /projects/{project_id}/branches/{branch_id}"
    control_plane.inject(Fault(route=route, status=status, times=1))
    async with worker() as http:
        response = await http.delete("/tenants/acme")
        assert (response.status_code, response.headers.get("Retry-After")) == expected
        assert control_plane.api_key not in response.text
        assert await status_of(http, "DELETE", "acme") == 204


@pytest.mark.virtual_time
@pytest.mark.control_plane(durations=Durations(by_action={"delete_timeline": 90.0}))
async def test_repeated_sign_off_waits_for_the_deletion_of_the_first(
    neon: NeonClient, project_id: str
) -> None:
    await neon.branches.create(project_id, name="tenant/acme", wait=True)
    async with worker() as http:
        assert await status_of(http, "DELETE", "acme") == 503
        assert await status_of(http, "DELETE", "acme") == 204
    assert {one.status async for one in neon.operations.list(project_id)} == {"finished"}


async def test_tenant_that_signs_off_during_a_request_is_unknown(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    await neon.branches.create(project_id, name="tenant/acme")
    route = "GET /projects/{project_id}/branches/{branch_id}/databases"
    control_plane.inject(Fault(route=route, status=404, times=1))
    async with worker() as http:
        assert await status_of(http, "GET", "acme/notes") == 404


@pytest.mark.usefixtures("project_id")
async def test_unknown_tenant_can_sign_off() -> None:
    async with worker() as http:
        assert await status_of(http, "DELETE", "acme") == 204


async def test_branch_of_somebody_else_is_no_tenant(neon: NeonClient, project_id: str) -> None:
    await neon.branches.create(project_id, name="tenant/acme")
    async with worker() as http:
        response = await http.put("/tenants/acme")
    assert (response.status_code, response.json()) == (409, {"detail": "the name is in use"})


async def test_database_that_refuses_connections_is_a_503(unused_tcp_port: int) -> None:
    async def connection_uri(_tenant: str) -> ConnectionUri:
        return ConnectionUri(
            f"postgresql://app:secret@127.0.0.1:{unused_tcp_port}/app?sslmode=disable"
        )

    async with worker_with(connection_uri) as http:
        response = await http.get("/tenants/acme/notes")
    assert (response.status_code, response.headers["Retry-After"]) == (503, "5")
    assert response.json() == {"detail": "try again"}


async def test_connection_that_the_server_is_closing_is_a_503() -> None:
    async def connection_uri(_tenant: str) -> ConnectionUri:
        raise InternalClientError("cannot switch to state 12; another operation is in progress")

    async with worker_with(connection_uri) as http:
        assert await status_of(http, "GET", "acme/notes") == 503


@pytest.mark.parametrize("name", ["Acme", "a", "1a", "a_b", "a" * 41, "a%2Fb"])
@pytest.mark.usefixtures("project_id")
async def test_wrong_names_never_reach_neon(control_plane: LocalControlPlane, name: str) -> None:
    before = control_plane.requests_served
    async with worker() as http:
        assert await status_of(http, "PUT", name) in {404, 422}
    assert control_plane.requests_served == before


@asynccontextmanager
async def program(workers: int, *arguments: str) -> AsyncGenerator[str]:
    """Run the program, and yield its URL. At the end, the program must stop cleanly."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tenants", "--port", "0"),
        *("--workers", str(workers), *arguments),
        cwd=EXAMPLES,
        stderr=asyncio.subprocess.PIPE,
    )
    log = ""
    try:
        assert process.stderr is not None
        while log.count("startup complete") < workers or "running on" not in log:
            line = await process.stderr.readline()
            assert line, log
            log += line.decode()
        [url] = re.findall(r"running on (http://\S+)", log)
        yield url
    finally:
        if process.returncode is None:
            process.terminate()  # its workers would survive a kill
        _, rest = await process.communicate()
    log += rest.decode()
    assert (process.returncode, "Traceback" in log) == (0, False), log


@pytest.fixture
def no_account(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment in which the program starts its own control plane."""
    skip_without_postgres()
    for name in [name for name in os.environ if name.startswith("NEON_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CACHE_HOME", CACHE)


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory that the account of the servers can enter, unlike pytest's ``tmp_path``."""
    directory = Path(tempfile.mkdtemp(prefix="neonctl-test-")).resolve()
    directory.chmod(0o711)
    yield directory
    remove(directory)


@pytest.mark.postgres
@pytest.mark.process
@pytest.mark.scale
@pytest.mark.usefixtures("no_account")
async def test_program_serves_with_two_workers(open_directory: Path) -> None:
    data = ("--data", str(open_directory / "tenants.db"))
    async with program(2, *data) as url:
        for method, path in (("PUT", "acme"), ("PUT", "globex"), ("DELETE", "globex")):
            async with httpx.AsyncClient(base_url=url, timeout=60) as http:
                assert await status_of(http, method, path) in {201, 204}
        async with httpx.AsyncClient(base_url=url, timeout=60) as http:
            assert await status_of(http, "POST", "acme/notes", note="hello") == 201
        for _ in range(8):  # each has a new connection, so both workers serve some
            async with httpx.AsyncClient(base_url=url, timeout=60) as http:
                assert await notes_of(http, "acme") == ["hello"]
    async with program(1, *data) as url:
        async with httpx.AsyncClient(base_url=url, timeout=60) as http:
            assert await notes_of(http, "acme") == ["hello"]
            assert (await http.get("/tenants")).json() == ["acme"]


@pytest.mark.postgres
@pytest.mark.process
@pytest.mark.scale
@pytest.mark.usefixtures("no_account")
async def test_commands_of_the_page_print_its_output() -> None:
    kind = 'console title="In another terminal"'
    [(_, block)] = code_blocks(TEXTS["docs/recipes.md"], kind)
    async with program(2) as url:
        commands = re.findall(r"^\$ (.*)$", block, re.MULTILINE)
        script = "\n".join(commands).replace("http://127.0.0.1:8000", url)
        shell = await asyncio.create_subprocess_exec(
            *("sh", "-e", "-c", script), stdout=asyncio.subprocess.PIPE, stderr=DEVNULL
        )
        output, _ = await shell.communicate()
    assert shell.returncode == 0
    shown = [line for line in block.splitlines() if not line.startswith("$ ")]
    assert output.decode() == "".join(shown)
