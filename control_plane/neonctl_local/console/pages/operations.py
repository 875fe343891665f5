"""Monitoring > System operations: the operations of a project, newest first."""

from collections.abc import Mapping
from urllib.parse import urlencode

from aiohttp import web

from neonctl_local.clock import Instant
from neonctl_local.console.fields import natural_number
from neonctl_local.console.labels import LABELS, OPERATION_NAMES
from neonctl_local.console.operation_list import OperationList, Wanted, read_list
from neonctl_local.console.visits import Visit
from neonctl_local.server.application import CONSOLE_PATH


async def show(visit: Visit) -> web.StreamResponse:
    """``GET /console/projects/{project_id}/operations``."""
    project_id = visit.path["project_id"]
    # This request runs the background work that is due, for a project that is not deleted.
    await visit.call(
        "GET /projects/{project_id}/operations", object, query={"limit": "1"}, project_id=project_id
    )
    wanted = _wanted(visit.query)
    found = await visit.read(read_list, visit.principal, project_id, wanted)
    url = f"{CONSOLE_PATH}/projects/{project_id}/operations"
    return visit.page(
        "operations.html",
        project=found.project,
        found=found,
        wanted=wanted,
        url=url,
        branches=_branch_choices(found, wanted),
        actions=_with_other([("", "All operations"), *OPERATION_NAMES.items()], wanted.action),
        statuses=_with_other(
            [("", "All statuses"), *((label, label) for label in LABELS)], wanted.status
        ),
        newer=_page_url(url, wanted, "after", found.newer),
        older=_page_url(url, wanted, "before", found.older),
    )


def _wanted(query: Mapping[str, str]) -> Wanted:
    return Wanted(
        branch=query.get("branch", ""),
        action=query.get("action", ""),
        status=query.get("status", ""),
        before=natural_number(query.get("before", "")),
        after=natural_number(query.get("after", "")),
    )


def _page_url(url: str, wanted: Wanted, name: str, position: Instant | None) -> str:
    """Return the URL of another page with the same filter, or "" if there is none."""
    if position is None:
        return ""
    fields = {"branch": wanted.branch, "action": wanted.action, "status": wanted.status}
    kept = {key: value for key, value in fields.items() if value}
    return f"{url}?{urlencode({**kept, name: position})}"


def _branch_choices(found: OperationList, wanted: Wanted) -> list[tuple[str, str]] | None:
    """Return the values and the labels of the filter, or None for a text field."""
    if found.branches is None:
        return None
    choices = [("", "All branches")]
    for branch in found.branches:
        deleted = "" if branch.deleted_at is None else " (deleted)"
        choices.append((branch.id, f"{branch.name}{deleted}"))
    return _with_other(choices, wanted.branch)


def _with_other(choices: list[tuple[str, str]], value: str) -> list[tuple[str, str]]:
    """Add a value that is not among the choices, so that the form shows it."""
    is_known = any(value == known for known, _ in choices)
    return choices if is_known else [*choices, (value, value)]
