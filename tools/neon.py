"""Checks against Neon what its guides leave open: ``python -m tools.neon``, with the key of a user.

Each check sends a few requests about a project that the run creates, and deletes at its end. The
same checks run on a local control plane, and the run prints where the answers differ. It saves all
of them without names, ids and secrets. Without a key, it lists the checks.
"""

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, TypeAlias
from uuid import uuid4

import msgspec
from msgspec import UNSET, UnsetType

from neonctl_async import APIError, EndpointSpec, NeonClient, NeonError, RetryPolicy
from neonctl_async.clock import utc_now
from neonctl_async.types import BranchCreated, OperationsResponse
from neonctl_local import LocalControlPlane

# Any: what a check found, which is JSON.
Answer: TypeAlias = Any
Both: TypeAlias = dict[str, dict[str, Answer]]
"""The answers of Neon and of the local control plane, by check."""

KEY, LIMIT, ORGANIZATION = "NEON_API_KEY", "NEON_PROJECT_LIMIT", "NEON_ORG_ID"
PREFIX: Final = "neonctl-check-"
SAVED: Final = Path("neon-answers.json")
CHECK_SECONDS: Final = 180
COMPUTE: Final = EndpointSpec(
    type="read_write", autoscaling_limit_min_cu=0.25, autoscaling_limit_max_cu=0.25
)
PRIVATE: Final = re.compile(r"(\w*id|name|email|login|host|password|\w*key|connection_uri)s?")
PAIRS: Final = re.compile(r'"(\w+)": ("(?:[^"\\]|\\.){3,}")')
"""The texts of JSON with their names, and the names of those that are not saved."""
SHAPES: Final = re.compile(
    r"postgres(ql)?://\S+|npg_\w+|neon_\w*key_\w+|[\w.+-]+@[\w.-]+|[\w.-]+\.neon\.\w+"
    r"|\b\w{8}(-\w{4}){3}-\w{12}\b|\d{4}-\d\d-\d\d[T ][\d:.]+(Z|[+-][\d:]+)?"
    r"|\b(\w+-)*[a-z]+-[a-z]+-\w{8,}\b"
)
"""Secrets, addresses, hosts, times and ids in the texts of errors."""


class Site:
    """An API, with a project of the run."""

    def __init__(self, neon: NeonClient, impatient: NeonClient) -> None:
        self.neon = neon
        self._impatient = impatient
        self._private: set[str] = set()
        self.project = ""
        self.ids: dict[str, str] = {}
        """The parts of paths and bodies that are written in braces."""

    @asynccontextmanager
    async def opened(self, limit: int, org_id: str | None) -> AsyncGenerator[None]:
        """Create a project, unless the limit is reached, and delete it in the end."""
        left = self.neon.projects.list(search=PREFIX, org_id=org_id or UNSET)
        found = [one.id async for one in left if one.name.startswith(PREFIX)]
        if len(found) >= limit:
            raise SystemExit(
                f"{LIMIT} is {limit}, and projects of earlier runs are left: delete them with "
                f"`neonctl-async projects delete {' '.join(found)}`, or set a higher limit"
            )
        name = f"{PREFIX}{uuid4().hex[:8]}"
        created = await self.neon.projects.create(name=name, org_id=org_id or UNSET)
        self.project = created.project.id
        self.ids = {
            "project": f"/projects/{self.project}",
            "main": created.branch.id,
            "name": created.branch.name,
            "compute": created.endpoints[0].id,
        }
        self._private |= {self.project, *self.ids.values()}
        try:
            await self.neon.operations.wait(created)
            await self.read("GET", "/users/me")
            yield
        finally:
            await self.neon.projects.delete(self.project)

    async def read(self, method: str, path: str, body: object = UNSET, **query: str) -> Answer:
        """Return a response, after the operations that it has started."""
        content = await self._send(self.neon, method, path, body, query)
        if content and "operations" in content and method != "GET":
            await self.neon.operations.wait(msgspec.convert(content, OperationsResponse))
        return content

    async def ask(self, method: str, path: str, body: object = UNSET, **query: str) -> str:
        """Return "accepted", or the status and the message of the error."""
        return await self._outcome(self.read(method, path, body, **query))

    async def ask_meanwhile(self, method: str, path: str, body: object = UNSET) -> str:
        """Return the outcome of a request that is sent while the project creates a branch."""
        created = await self.neon.branches.create(self.project, endpoints=[COMPUTE])
        outcome = await self._outcome(self._send(self._impatient, method, path, body, {}))
        last = await self.neon.operations.get(self.project, created.operations[-1].id)
        await self.neon.operations.wait_for_project(self.project)
        await self.neon.branches.delete(self.project, created.branch.id, wait=True)
        if outcome == "accepted" and last.status == "finished":
            return "not measured: the operations had finished"
        return outcome

    @asynccontextmanager
    async def branch(self, parent_id: str | UnsetType = UNSET) -> AsyncGenerator[BranchCreated]:
        """Create a branch for a check."""
        async with self.neon.branches.ephemeral(
            self.project, endpoints=[], ttl_seconds=None, parent_id=parent_id
        ) as created:
            yield created

    async def _outcome(self, request: Awaitable[object]) -> str:
        try:
            await request
        except APIError as error:
            return f"{error.status} {self.public(error.message)}"
        return "accepted"

    async def _send(
        self,
        neon: NeonClient,
        method: str,
        path: str,
        body: object,
        query: Mapping[str, str],
    ) -> Answer:
        if body is not UNSET:
            text = json.dumps(body)
            for name, value in self.ids.items():
                text = text.replace(f"{{{name}}}", value)
            body = json.loads(text)
        content = await neon.request(method, path.format_map(self.ids), query=query, body=body)
        self._note(content)
        return content

    def _note(self, content: object) -> None:
        """Remember the values of a response that are not saved."""
        for name, value in PAIRS.findall(json.dumps(content, ensure_ascii=False)):
            if PRIVATE.fullmatch(name):
                self._private.add(json.loads(value))

    def public(self, text: str) -> str:
        """Return a text without what is private."""
        for private in sorted(self._private, key=len, reverse=True):
            text = text.replace(private, "…")
        return SHAPES.sub("…", text)


Check: TypeAlias = Callable[[Site], Awaitable[Answer]]
CHECKS: Final[dict[str, Check]] = {}
BRANCHES: Final = "{project}/branches"
MAIN: Final = f"{BRANCHES}/{{main}}"
COMPUTES: Final = "{project}/endpoints"
MAIN_COMPUTE: Final = f"{COMPUTES}/{{compute}}"


def check(function: Check) -> Check:
    """Add a check. Its docstring is what it does, and its result the answer of the API."""
    CHECKS[function.__doc__ or ""] = function
    return function


def check_request(text: str, method: str, path: str, body: object = UNSET, **query: str) -> None:
    """Add a check of one request."""
    CHECKS[text] = lambda at: at.ask(method, path, body, **query)


def ahead(**duration: int) -> str:
    """Return a time in the future."""
    return f"{utc_now() + timedelta(**duration):%Y-%m-%dT%H:%M:%SZ}"


def is_descending(records: Sequence[dict[str, str]], field: str) -> bool:
    """Return whether the records of a list are in the descending order of a field."""
    values = [record[field] for record in records]
    return values == sorted(values, reverse=True)


def expiry(**duration: int) -> Answer:
    """Return the body of a request that lets a branch expire."""
    return {"branch": {"expires_at": ahead(**duration)}}


def size(least: float, most: float) -> Answer:
    """Return the body of a request that sets the size of a compute."""
    return {"endpoint": {"autoscaling_limit_min_cu": least, "autoscaling_limit_max_cu": most}}


check_request("Read a branch that does not exist.", "GET", f"{BRANCHES}/br-late-frost-a1b2c3d4")
check_request(
    "Create a branch with the name of another.", "POST", BRANCHES, {"branch": {"name": "{name}"}}
)
check_request(
    "Give a project a name of 65 characters.", "PATCH", "{project}", {"project": {"name": "n" * 65}}
)
check_request(
    "Create the role zenith_admin.", "POST", f"{MAIN}/roles", {"role": {"name": "zenith_admin"}}
)
check_request("List roles with an unknown query parameter.", "GET", f"{MAIN}/roles", limit="100")
check_request("Give a compute 0.3 CU.", "PATCH", MAIN_COMPUTE, size(0.3, 0.3))
check_request("Let a compute scale from 1 to 10 CU.", "PATCH", MAIN_COMPUTE, size(1, 10))
check_request(
    "Create a second read_write compute.",
    "POST",
    COMPUTES,
    {"endpoint": {"branch_id": "{main}", "type": "read_write"}},
)
check_request(
    "Restore a root branch to itself without a time.",
    "POST",
    f"{MAIN}/restore",
    {"source_branch_id": "{main}", "preserve_under_name": "before"},
)


@check
async def expiry_that_is_refused(at: Site) -> Answer:
    """Set an expiry 31 days ahead, and an expiry of the default branch."""
    too_late = await at.ask("POST", BRANCHES, expiry(days=31))
    return [too_late, await at.ask("PATCH", MAIN, expiry(days=1))]


@check
async def lock(at: Site) -> Answer:
    """Send six requests, each while the project creates a branch with a compute."""
    async with at.branch() as other:
        path = f"{BRANCHES}/{other.branch.id}"
        requests: dict[str, tuple[str, str, Answer]] = {
            "create a branch": ("POST", BRANCHES, {}),
            "create a role": ("POST", f"{MAIN}/roles", {"role": {"name": "meanwhile"}}),
            "change a compute": (
                "PATCH",
                MAIN_COMPUTE,
                {"endpoint": {"suspend_timeout_seconds": 300}},
            ),
            "rename a branch": ("PATCH", path, {"branch": {"name": "renamed"}}),
            "rename the project": ("PATCH", "{project}", {"project": {"name": f"{PREFIX}new"}}),
            "delete a branch": ("DELETE", path, UNSET),
        }
        return {name: await at.ask_meanwhile(*request) for name, request in requests.items()}


@check
async def expiry_of_a_parent(at: Site) -> Answer:
    """Set the expiry of a parent, and create a child of a branch with an expiry."""
    async with at.branch() as parent:
        path, child = f"{BRANCHES}/{parent.branch.id}", {"parent_id": parent.branch.id}
        async with at.branch(parent.branch.id):
            with_child = await at.ask("PATCH", path, expiry(days=1))
        await at.read("PATCH", path, expiry(days=1))
        return [with_child, await at.ask("POST", BRANCHES, {"branch": child})]


@check
async def expiry_of_a_record(at: Site) -> Answer:
    """Change a branch with an expiry, and protect it."""
    async with at.branch() as created:
        path = f"{BRANCHES}/{created.branch.id}"
        await at.read("PATCH", path, expiry(hours=2))
        changed = (await at.read("PATCH", path, {"branch": {"name": "changed"}}))["branch"]
        about_two_hours = 7100 < changed.get("ttl_interval_seconds", 0) <= 7200
        protected = await at.ask("PATCH", path, {"branch": {"protected": True}})
        return ["expires_at" in changed, about_two_hours, protected]


@check
async def new_branch(at: Site) -> Answer:
    """Create a branch of a parent with one database, and of one with two."""
    found: list[str | None] = []
    roles = (await at.read("GET", f"{MAIN}/roles"))["roles"]
    for name in ("", "second"):
        if name:
            body = {"database": {"name": name, "owner_name": roles[0]["name"]}}
            await at.read("POST", f"{MAIN}/databases", body)
        created = await at.neon.branches.create(at.project, endpoints=[COMPUTE])
        found += [created.branch.current_state, created.branch.pending_state]
        found += [f"{one.action} {one.status}" for one in created.operations]
        found.append(f"{len(created.connection_uris)} URIs")
        await at.neon.operations.wait(created)
        await at.neon.branches.delete(at.project, created.branch.id, wait=True)
    await at.read("DELETE", f"{MAIN}/databases/second")
    return found


@check
async def order_of_lists(at: Site) -> Answer:
    """List branches, operations and keys."""
    async with at.branch():
        branches = await at.read("GET", BRANCHES)
        operations = await at.read("GET", "{project}/operations", limit="2")
        keys = await at.read("GET", "/api_keys")
    return [
        is_descending(branches["branches"], "updated_at"),
        {name: name == "next" or value for name, value in branches.get("pagination", {}).items()},
        is_descending(operations["operations"], "created_at"),
        sorted(operations.get("pagination", {})),
        is_descending(keys, "created_at"),
    ]


@check
async def settings_of_a_project(at: Site) -> Answer:
    """Read the settings of a new project."""
    project = (await at.read("GET", "{project}"))["project"]
    names = ("settings", "default_endpoint_settings", "pg_version", "history_retention_seconds")
    return {name: project.get(name) for name in names}


@check
async def restart_of_an_idle_compute(at: Site) -> Answer:
    """Restart an idle compute."""
    await at.ask("POST", f"{MAIN_COMPUTE}/suspend")
    return await at.ask("POST", f"{MAIN_COMPUTE}/restart")


@check
async def restore_of_a_child(at: Site) -> Answer:
    """Restore a child branch to its own past."""
    async with at.branch() as created:
        past = {"source_timestamp": ahead(seconds=-1), "preserve_under_name": "before"}
        body = {"source_branch_id": created.branch.id, **past}
        return await at.ask("POST", f"{BRANCHES}/{created.branch.id}/restore", body)


@check
async def name_of_a_snapshot(at: Site) -> Answer:
    """Take two snapshots of one name."""
    return [await at.ask("POST", f"{MAIN}/snapshot", name="twice") for _ in range(2)]


@check
async def deleted_branch(at: Site) -> Answer:
    """Delete a branch, and list it."""
    async with at.branch() as created:
        gone = await at.read("DELETE", f"{BRANCHES}/{created.branch.id}")
        listed = (await at.read("GET", BRANCHES, include_deleted="true"))["branches"]
    found = [one.get("recovery", {}) for one in listed if one["id"] == created.branch.id]
    return [gone["branch"].get("pending_state"), [sorted(recovery) for recovery in found]]


async def answers(
    limit: int = 1,
    org_id: str | None = None,
    *,
    api_key: str | None = None,
    base_url: str | None = None,
) -> tuple[dict[str, Answer], int]:
    """Run all checks. Return the answers, and the number of requests."""
    async with (
        NeonClient(api_key, base_url=base_url) as neon,
        NeonClient(api_key, base_url=base_url, retry=RetryPolicy.never()) as impatient,
    ):
        site, found = Site(neon, impatient), dict[str, Answer]()
        async with site.opened(limit, org_id):
            for text, ask in CHECKS.items():
                try:
                    async with asyncio.timeout(CHECK_SECONDS):
                        found[text] = await ask(site)
                except (NeonError, TimeoutError, LookupError, TypeError, ValueError) as error:
                    found[text] = f"not measured: {site.public(repr(error))}"
                    await neon.operations.wait_for_project(site.project, raise_on_failure=False)
        return found, neon.requests_sent + impatient.requests_sent


async def run(limit: int, org_id: str | None) -> tuple[Both, int]:
    """Check Neon and a local control plane. Return the answers, and the requests to Neon."""
    neon, requests = await answers(limit, org_id)
    async with LocalControlPlane() as local:
        here, _ = await answers(api_key=local.api_key, base_url=local.base_url)
    return {text: {"Neon": neon[text], "here": here[text]} for text in CHECKS}, requests


def differences(both: Both) -> str:
    """Return the answers that differ."""
    different = {text: pair for text, pair in both.items() if pair["Neon"] != pair["here"]}
    lines = [
        f"{text}\n  Neon: {one['Neon']}\n  here: {one['here']}" for text, one in different.items()
    ]
    return "\n".join([*lines, f"{len(both) - len(different)} of {len(both)} answers are equal."])


def main() -> None:
    """Run with the settings in the environment."""
    limit = os.environ.get(LIMIT, "")
    if os.environ.get(KEY) and limit.isdecimal() and int(limit):
        both, requests = asyncio.run(run(int(limit), os.environ.get(ORGANIZATION)))
        SAVED.write_text(json.dumps(both, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        sys.stdout.write(f"{differences(both)} {requests} requests. All answers: {SAVED}\n")
    else:
        sys.stdout.write(
            f"{KEY} and {LIMIT} are not both set. With a personal key, and the number of projects "
            "of this program that may exist, such as 1, it creates a project, compares with the "
            f"local control plane what is listed below, and deletes the project. {ORGANIZATION} "
            "selects an organization. It takes about ten minutes.\n"
        )
        sys.stdout.writelines(f"- {text}\n" for text in CHECKS)


if __name__ == "__main__":
    main()
