"""A control plane with real databases, without servers: the tests are its driver."""

import json
import re
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from msgspec.structs import replace

from neonctl_local import Durations, ManualClock
from neonctl_local.api.request.calls import Call, Response
from neonctl_local.clock import Instant, instant
from neonctl_local.engine import accounts, api_keys, background, settlement, work
from neonctl_local.engine.points import UncheckedPointError
from neonctl_local.engine.work import Work
from neonctl_local.errors import ApiError
from neonctl_local.server.routes import ROUTES, Route
from neonctl_local.settings import BackgroundIntervals, Lock, PostgresRules, Rules
from neonctl_local.storage.database import Database
from neonctl_local.storage.rows import Row
from neonctl_local.storage.tables import Operation, Project
from neonctl_local.storage.transactions import Transaction

P = ParamSpec("P")
T = TypeVar("T")
RowT = TypeVar("RowT", bound=Row)

POSTGRES = PostgresRules(versions=(18, 16), host="127.0.0.1", port=5433)


class DrivenControlPlane:
    """The tables and the API of a control plane with real databases, in memory.

    Work is done when the test settles its operation. Without ``postgres``, databases are emulated.
    """

    def __init__(
        self,
        *,
        durations: Durations | None = None,
        lock: Lock = "none",
        intervals: BackgroundIntervals | None = None,
        postgres: PostgresRules | None = POSTGRES,
    ) -> None:
        self.clock = ManualClock()
        self.rules = Rules(
            durations=durations or Durations(default=1),
            intervals=intervals or BackgroundIntervals(),
            lock=lock,
            postgres=postgres,
        )
        self.database = Database(None, self.clock, self.rules)

    def __enter__(self) -> Self:
        _result(self.database.open())
        self.account = self.run(accounts.ensure_first_account)
        self.principal = self.run(
            api_keys.authenticate, f"Bearer {self.account.api_key}", "127.0.0.1"
        )
        return self

    def __exit__(self, *exc_info: object) -> None:
        _result(self.database.close())

    @property
    def now(self) -> Instant:
        """The time of the control plane."""
        return instant(self.clock())

    def run(
        self, function: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call a function in a transaction."""
        return _result(self.database.run(function, *args, **kwargs))

    # Any: each test knows the shape of the response.
    def request(self, method: str, path: str, body: object = None, **query: str) -> Any:
        """Send a request. Return the body of the response, or None. Raise ApiError."""
        for route in ROUTES:
            found = re.fullmatch(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", route.path), path)
            if found and route.method == method:
                content = b"" if body is None else json.dumps(body).encode()
                call = Call(
                    principal=self.principal, path=found.groupdict(), query=query, content=content
                )
                try:
                    return self.run(_respond, route, call)
                except UncheckedPointError as unchecked:
                    checked = replace(call, checked_points=frozenset([unchecked.point]))
                    return self.run(_respond, route, checked)
        raise LookupError(f"no route for {method} {path}")

    def refused(self, method: str, path: str, body: object = None) -> ApiError:
        """Send a request that fails. Return the error."""
        try:
            self.request(method, path, body)
        except ApiError as error:
            return error
        raise AssertionError(f"{method} {path} was not refused")

    def ready(self) -> list[Operation]:
        """Return the operations whose work may start."""
        return self.run(work.ready)

    def next_start(self) -> Instant | None:
        """Return the next planned start of work."""
        return self.run(work.next_start)

    def works(self) -> list[Work]:
        """Return the work that may start."""
        return [work.of(operation) for operation in self.ready()]

    def finish(self, *operations: Operation, error: str | None = None) -> None:
        """Report the end of the work of operations."""
        for operation in operations:
            self.run(settlement.settle, operation.id, error)

    def work_off(self) -> list[Work]:
        """Do all work that gets ready, while time passes. Return the work in its order."""
        done: list[Work] = []
        while self.run(work.unfinished):
            for operation in self.ready():
                done.append(work.of(operation))
                self.finish(operation)
            self.clock.advance(1)
        self.clock.advance(1)
        return done

    def rows(self, kind: type[RowT], where: str = "", *values: str) -> list[RowT]:
        """Return rows of a table."""
        return self.run(lambda tx: tx.select(kind, where, *values))

    def operations(self, project_id: str) -> list[dict[str, Any]]:  # Any: as request
        """Return the operations of a project, oldest first."""
        page = self.request("GET", f"/projects/{project_id}/operations")
        return list(reversed(page["operations"]))


class DrivenProject:
    """A project with a branch and a running compute, whose operations have finished."""

    def __init__(self, plane: DrivenControlPlane, **spec: object) -> None:
        self.plane = plane
        created = plane.request("POST", "/projects", {"project": spec})
        self.id: str = created["project"]["id"]
        self.main: str = created["branch"]["id"]
        self.endpoint: str = created["endpoints"][0]["id"]
        self.path = f"/projects/{self.id}"
        self.main_path = f"{self.path}/branches/{self.main}"
        self.endpoint_path = f"{self.path}/endpoints/{self.endpoint}"
        plane.work_off()

    def branch(self, *, compute: bool = False, **spec: object) -> Any:  # Any: as request
        """Create a branch, with a compute or without. Return the response."""
        endpoints = [{"type": "read_write"}] if compute else []
        body = {"branch": spec, "endpoints": endpoints}
        return self.plane.request("POST", f"{self.path}/branches", body)

    def state(self) -> str:
        """Return the state of the compute."""
        return str(self.plane.request("GET", self.endpoint_path)["endpoint"]["current_state"])


def _respond(tx: Transaction, route: Route, call: Call) -> Any:  # Any: as request
    where = "WHERE id = ? AND deleted_at IS NULL"
    project = tx.first(Project, where, call.path.get("project_id"))
    if project is not None:
        background.on_project_request(tx, project)
        tx.commit()
    response = route.handler(tx, call)
    assert isinstance(response, Response), "the schema of a database needs a server"
    return json.loads(response.content) if response.content else None


def _result(coroutine: Coroutine[Any, Any, T]) -> T:  # Any: what a coroutine sends and receives
    """Return the result of a coroutine that never waits, as all those of a database in memory."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    raise AssertionError("the coroutine waited")
