"""Tests a local control plane under load: 50 clients for 60 seconds, ``python -m tools.soak``.

Each client creates a branch with a compute, waits for its operations, lists, creates a key, uses
it, revokes it, and deletes the branch. Halfway, the server process is killed and restarted on its
file. At the end, the server must agree with all of its responses about keys and branches. Every
operation must have exactly one final status. Statuses must be the documented ones, and the
memory of the process must not grow.
"""

import argparse
import asyncio
import json
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp

from control_plane.tests.client import Http, Reply
from tests.support.server_process import Served, serving

EXPECTED = frozenset({200, 201})
FINAL = frozenset({"finished", "failed"})
MEGABYTE = 1 << 20


class Ledger:
    """The content of all responses, which the server must agree with at the end.

    The value of a key or branch is ``None`` while a request may be changing it.
    """

    def __init__(self) -> None:
        self.statuses: Counter[int] = Counter()
        self.lost_connections = 0
        self.keys: dict[str, bool | None] = {}
        self.branches: dict[str, bool | None] = {}
        self.operations: dict[str, str | None] = {}
        self.violations: list[str] = []

    def record(self, operation: dict[str, Any]) -> None:
        """Record a final status; a second, different one is a violation."""
        if operation["status"] in FINAL and not operation.get("retry_at"):
            before = self.operations.get(operation["id"])
            if before not in (None, operation["status"]):
                self.violations.append(f"{operation['id']}: {before}, {operation}")
            self.operations[operation["id"]] = operation["status"]


class Worker:
    """One client."""

    def __init__(self, number: int, soak: "Soak") -> None:
        self.number = number
        self.soak = soak
        self.ledger = soak.ledger
        self.rounds = 0

    async def send(self, method: str, path: str, body: object = None, key: str = "") -> Reply:
        """Send a request, and repeat it while the server is down; a POST is not repeated."""
        while True:
            await self.soak.up.wait()
            try:
                reply = await self.soak.http.send(method, path, body, key=key or None)
            except (aiohttp.ClientError, RuntimeError):
                self.ledger.lost_connections += 1
                if method == "POST":
                    raise
                await asyncio.sleep(0.05)
                continue
            self.ledger.statuses[reply.status] += 1
            return reply

    async def run(self) -> None:
        """Run rounds until the time is over."""
        while not self.soak.over:
            try:
                await self.round()
            except (aiohttp.ClientError, RuntimeError):
                # The connection broke during a POST. Nothing is known about its effect.
                await asyncio.sleep(0.05)

    async def round(self) -> None:
        """Use a branch and a key."""
        project = self.soak.project_id
        self.rounds += 1
        body = {
            "branch": {"name": f"b-{self.number}-{self.rounds}"},
            "endpoints": [{"type": "read_write"}],
        }
        created = (await self.expect("POST", f"/projects/{project}/branches", body)).json
        branch_id = created["branch"]["id"]
        self.ledger.branches[branch_id] = True
        await self.wait(created["operations"])
        await self.use_a_key()
        await self.expect("GET", f"/projects/{project}/branches?limit=20")
        self.ledger.branches[branch_id] = None
        # 204: an earlier attempt, whose response was lost, has deleted the branch.
        deleted = await self.expect("DELETE", f"/projects/{project}/branches/{branch_id}", also=204)
        self.ledger.branches[branch_id] = False
        if deleted.status == 200:
            await self.wait(deleted.json["operations"])

    async def use_a_key(self) -> None:
        """Create a key, use it, and revoke it in half of the cases."""
        created = (await self.expect("POST", "/api_keys", {"key_name": "soak"})).json
        token = created["key"]
        self.ledger.keys[token] = True
        await self.expect("GET", "/users/me", key=token)
        if random.random() < 0.5:
            self.ledger.keys[token] = None
            await self.expect("DELETE", f"/api_keys/{created['id']}", also=404)
            self.ledger.keys[token] = False
            reply = await self.send("GET", "/users/me", key=token)
            if reply.status != 401:
                self.ledger.violations.append(f"a revoked key got the status {reply.status}")

    async def wait(self, operations: list[dict[str, Any]]) -> None:
        """Poll operations until all have a final status."""
        for operation in operations:
            self.ledger.operations.setdefault(operation["id"], None)
        path = f"/projects/{self.soak.project_id}/operations"
        while any(self.ledger.operations[operation["id"]] is None for operation in operations):
            for operation in operations:
                reply = await self.expect("GET", f"{path}/{operation['id']}")
                self.ledger.record(reply.json["operation"])
            await asyncio.sleep(0.1)

    async def expect(
        self, method: str, path: str, body: object = None, *, key: str = "", also: int = 200
    ) -> Reply:
        """Send a request; a status other than 200, 201 and ``also`` is a violation."""
        reply = await self.send(method, path, body, key)
        if reply.status not in EXPECTED | {also}:
            self.ledger.violations.append(f"{method} {path}: {reply.status} {reply.content!r}")
        return reply


class Soak:
    """The run: a server process, the clients, the kill, and the final checks."""

    def __init__(self, clients: int, seconds: float, data: Path) -> None:
        self.ledger = Ledger()
        self.up = asyncio.Event()
        self.over = False
        self.http: Http
        self.project_id = ""
        self._clients = clients
        self._seconds = seconds
        self._arguments = ("--data", str(data), "--duration", "0.2", "--quiet")
        self._memory: list[int] = []

    async def run(self) -> list[str]:
        """Run everything; return the violations."""
        async with serving(*self._arguments) as served:
            key = served.api_key
            async with Http(served.base_url, key) as self.http:
                made = await self.http.request("POST", "/projects", {"project": {}})
                self.project_id = made["project"]["id"]
                workers = [Worker(number, self) for number in range(self._clients)]
                self.up.set()
                tasks = [asyncio.create_task(worker.run()) for worker in workers]
                await self._measure(served, self._seconds / 2)
                self.up.clear()
                await served.kill()
        async with (
            serving(*self._arguments, first=False) as served,
            Http(served.base_url, key) as self.http,
        ):
            self.up.set()
            await self._measure(served, self._seconds / 2)
            self.over = True
            await asyncio.gather(*tasks)
            return await self._check()

    async def _measure(self, served: Served, seconds: float) -> None:
        end = time.monotonic() + seconds
        self._memory = []
        while time.monotonic() < end:
            await asyncio.sleep(min(1.0, seconds / 10))
            self._memory.append(resident(served.process.pid))

    async def _check(self) -> list[str]:
        violations = [
            f"a response had the status {status}"
            for status in self.ledger.statuses
            if status >= 402 and status != 404
        ]
        violations += await self._missing_operations()
        for branch_id, exists in self.ledger.branches.items():
            path = f"/projects/{self.project_id}/branches/{branch_id}"
            status = (await self.http.send("GET", path)).status
            if exists is not None and status != (200 if exists else 404):
                violations.append(f"branch {branch_id} got the status {status}, {exists=}")
        for token, valid in self.ledger.keys.items():
            status = (await self.http.send("GET", "/users/me", key=token)).status
            if valid is not None and status != (200 if valid else 401):
                violations.append(f"a key got the status {status}, {valid=}")
        early, late = (sum(part) / len(part) for part in halves(self._memory))
        if late - early > 8 * MEGABYTE:
            violations.append(
                f"memory grew from {early / MEGABYTE:.1f} to {late / MEGABYTE:.1f} MiB"
            )
        self._report(early, late)
        return violations

    async def _missing_operations(self) -> list[str]:
        path = f"/projects/{self.project_id}/operations?limit=1000"
        found: dict[str, str] = {}
        page = await self.http.get(path)
        while page["operations"]:
            for operation in page["operations"]:
                self.ledger.record(operation)
                found[operation["id"]] = operation["status"]
            cursor = quote(page["pagination"]["cursor"], safe="")
            page = await self.http.get(f"{path}&cursor={cursor}")
        missing = [
            f"operation {id_} is missing" for id_ in self.ledger.operations if id_ not in found
        ]
        pending = [
            f"operation {id_} is {status}"
            for id_, status in found.items()
            if id_ in self.ledger.operations and status not in FINAL
        ]
        return missing + pending + self.ledger.violations

    def _report(self, early: float, late: float) -> None:
        report = {
            "statuses": dict(sorted(self.ledger.statuses.items())),
            "lost connections": self.ledger.lost_connections,
            "operations": len(self.ledger.operations),
            "branches": len(self.ledger.branches),
            "keys": len(self.ledger.keys),
            "memory, MiB": [round(early / MEGABYTE, 1), round(late / MEGABYTE, 1)],
        }
        sys.stdout.write(json.dumps(report, indent=2) + "\n")


def halves(numbers: list[int]) -> tuple[list[int], list[int]]:
    """Return the two halves of a list without its first fifth, in which a process warms up."""
    steady = numbers[len(numbers) // 5 :] or [0]
    middle = len(steady) // 2 or 1
    return steady[:middle], steady[middle:] or steady


def resident(pid: int) -> int:
    """Return the memory of a process in bytes, or 0 if the system does not report it."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return 0


def main() -> int:
    """Run the test; return 1 after a violation."""
    parser = argparse.ArgumentParser(prog="python -m tools.soak")
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        soak = Soak(options.clients, options.seconds, Path(directory) / "plane.db")
        violations = asyncio.run(soak.run())
    verdict = f"{len(violations)} violations"
    sys.stdout.writelines(f"{line}\n" for line in [*violations[:20], verdict])
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
