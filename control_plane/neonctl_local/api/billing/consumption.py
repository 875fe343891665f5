"""Requests that list the consumption of projects and branches, by timeframe."""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Final
from uuid import NAMESPACE_URL, uuid5

from neonctl_local.api.billing import metrics
from neonctl_local.api.billing.metrics import Metric
from neonctl_local.api.request import access
from neonctl_local.api.request.calls import Call, Json, Response, respond
from neonctl_local.clock import Instant, in_seconds
from neonctl_local.engine import timeframes, usage
from neonctl_local.engine.api_keys import Principal
from neonctl_local.engine.timeframes import GRANULARITIES, Span
from neonctl_local.engine.usage import BranchUsage
from neonctl_local.errors import invalid
from neonctl_local.storage.rows import SqlValue
from neonctl_local.storage.tables import Branch, Project
from neonctl_local.storage.transactions import Transaction

MAXIMUM_IDS: Final = 100

Measure = Callable[[Sequence[BranchUsage], Span], Json]
"""Returns the metrics of branches within a timeframe, as the API shows them."""


def list_projects_legacy(tx: Transaction, call: Call) -> Response:
    """``GET /consumption_history/projects``: without ``org_id``, list the account's projects."""
    org_id = call.query.get("org_id")
    if org_id:
        access.organization_of(tx, call.principal, org_id)
    owner = ("org_id", org_id) if org_id else _account(call.principal)
    chosen = _metrics(call, metrics.LEGACY)
    if not chosen and call.flag("include_v1_metrics"):
        chosen = {"data_storage_bytes_hour": metrics.LEGACY["data_storage_bytes_hour"]}
    chosen = {**metrics.ALWAYS, **chosen}
    return _list_projects(
        tx, call, owner, lambda branches, frame: _by_name(chosen, branches, frame)
    )


def list_projects(tx: Transaction, call: Call) -> Response:
    """``GET /consumption_history/v2/projects``: newest project first."""
    org_id = _organization_id(tx, call)
    chosen = _required_metrics(call, metrics.OF_PROJECTS)
    return _list_projects(tx, call, ("org_id", org_id), _listed(chosen))


def list_branches(tx: Transaction, call: Call) -> Response:
    """``GET /consumption_history/v2/branches``: sorted by project id and branch id."""
    org_id = _organization_id(tx, call)
    call.required("project_ids")
    measure = _listed(_required_metrics(call, metrics.OF_BRANCHES))
    frames = _frames(tx, call)
    since = frames[0].start if frames else tx.now
    projects, project_ids = _chosen("id", _names(call, "project_ids"))
    branches, branch_ids = _chosen("id", _names(call, "branch_ids"))
    page = tx.select(
        Branch,
        "WHERE project_id IN (SELECT id FROM projects WHERE org_id = ? AND deleted_at IS NULL"
        f"{projects}){branches} AND (project_id, id) > (?, ?) AND ifnull(deleted_at, ?) > ? "
        "ORDER BY project_id, id LIMIT ?",
        *(org_id, *project_ids, *branch_ids, *_after(call)),
        *(tx.now, since),
        call.integer("limit", 100),
    )
    found: list[Json] = []
    for project_id, listed in groupby(page, lambda branch: branch.project_id):
        usages = {branch.id: branch for branch in usage.of_project(tx, project_id, since)}
        for branch in listed:
            used = [usages[branch.id]]
            periods = _periods(tx, org_id, _within(frames, used[0].life), used, measure)
            found.append({"project_id": project_id, "branch_id": branch.id, "periods": periods})
    body: Json = {"branches": found}
    if page:
        body["pagination"] = {"cursor": f"{page[-1].project_id}/{page[-1].id}"}
    return respond(body)


def _list_projects(
    tx: Transaction, call: Call, owner: tuple[str, str | None], measure: Measure
) -> Response:
    column, owner_id = owner
    frames = _frames(tx, call)
    since = frames[0].start if frames else tx.now
    projects, project_ids = _chosen("id", _names(call, "project_ids"))
    page = tx.select(
        Project,
        f"WHERE {column} = ? AND deleted_at IS NULL{projects} AND created_at < ? "
        "ORDER BY created_at DESC LIMIT ?",
        *(owner_id, *project_ids, access.project_position(tx, call)),
        call.integer("limit", 10),
    )
    found: list[Json] = []
    for project in page:
        life = Span(project.created_at, tx.now)
        branches = usage.of_project(tx, project.id, since)
        periods = _periods(tx, str(owner_id), _within(frames, life), branches, measure)
        found.append({"project_id": project.id, "periods": periods})
    body: Json = {"projects": found}
    if page:
        body["pagination"] = {"cursor": page[-1].id}
    return respond(body)


def _periods(
    tx: Transaction,
    account: str,
    frames: Sequence[Span],
    branches: Sequence[BranchUsage],
    measure: Measure,
) -> list[Json]:
    """Return the billing periods, which are calendar months, with their timeframes."""
    periods: list[Json] = []
    for month, within in groupby(frames, lambda frame: timeframes.month_of(frame.start)):
        start = in_seconds(month.start)
        period: Json = {
            "period_id": str(uuid5(NAMESPACE_URL, f"{account}/{start}")),
            "period_plan": "launch",
            "period_start": start,
        }
        if month.end <= tx.now:
            period["period_end"] = in_seconds(month.end)
        period["consumption"] = [
            {"timeframe_start": in_seconds(frame.start), "timeframe_end": in_seconds(frame.end)}
            | measure(branches, frame)
            for frame in within
        ]
        periods.append(period)
    return periods


def _frames(tx: Transaction, call: Call) -> list[Span]:
    since, until = _time(call, "from"), _time(call, "to")
    call.required("granularity")
    granularity = call.choice("granularity", GRANULARITIES, "")
    return timeframes.split(granularity, since, until, tx.now)


def _time(call: Call, name: str) -> Instant:
    call.required(name)
    at = call.timestamp(name)
    assert at is not None, "required() refuses an empty time"
    return at


def _within(frames: Sequence[Span], life: Span) -> list[Span]:
    return [frame for frame in frames if frame.overlap(life)]


def _listed(chosen: Mapping[str, Metric]) -> Measure:
    def measure(branches: Sequence[BranchUsage], frame: Span) -> Json:
        values = _by_name(chosen, branches, frame)
        return {
            "metrics": [{"metric_name": name, "value": value} for name, value in values.items()]
        }

    return measure


def _by_name(chosen: Mapping[str, Metric], branches: Sequence[BranchUsage], frame: Span) -> Json:
    return {name: metrics.total(metric, branches, frame) for name, metric in chosen.items()}


def _required_metrics(call: Call, known: Mapping[str, Metric]) -> Mapping[str, Metric]:
    call.required("metrics")
    return _metrics(call, known)


def _metrics(call: Call, known: Mapping[str, Metric]) -> Mapping[str, Metric]:
    names = _names(call, "metrics")
    for name in names:
        if name not in known:
            raise invalid(f"invalid request: metrics: {name!r} is not one of {', '.join(known)}")
    return {name: known[name] for name in names}


def _names(call: Call, parameter: str) -> list[str]:
    """Return the comma-separated values of a parameter."""
    names = [name for name in call.query.get(parameter, "").split(",") if name]
    if len(names) > MAXIMUM_IDS:
        raise invalid(
            f"invalid request: {parameter}: {len(names)} values, expected at most {MAXIMUM_IDS}"
        )
    return names


def _chosen(column: str, names: Sequence[str]) -> tuple[str, tuple[SqlValue, ...]]:
    """Return an SQL ``AND`` clause that selects the names, and its values.

    Without names, the clause is empty and selects everything.
    """
    if not names:
        return "", ()
    return f" AND {column} IN ({', '.join('?' * len(names))})", tuple(names)


def _after(call: Call) -> tuple[str, str]:
    """Return the ids of the project and the branch in the cursor."""
    cursor = call.query.get("cursor", "")
    project_id, slash, branch_id = cursor.partition("/")
    if cursor and not slash:
        raise invalid(f"invalid request: cursor: {cursor!r} is not a cursor of this list")
    return project_id, branch_id


def _organization_id(tx: Transaction, call: Call) -> str:
    return access.organization_of(tx, call.principal, call.required("org_id")).id


def _account(principal: Principal) -> tuple[str, str | None]:
    """Return the column and the value that select the projects of a key's account."""
    if principal.kind == "personal":
        return "user_id", principal.user_id
    if principal.kind == "organization":
        return "org_id", principal.org_id
    return "id", principal.project_id
