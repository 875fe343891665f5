"""The page of a branch, and the forms that create, change, delete and recover a branch."""

import msgspec
from aiohttp import web
from markupsafe import Markup

from neonctl_local.console.fields import drop_empty, moment, typed_or
from neonctl_local.console.lists import list_page
from neonctl_local.console.notices import sentence, started
from neonctl_local.console.pages import connections, databases
from neonctl_local.console.pages.branch_context import (
    Choice,
    branch_path,
    call_branch,
    find_branch,
    find_project,
    find_subject,
    read_choice,
    read_deleted,
    read_recoverable,
)
from neonctl_local.console.records import BranchChanged
from neonctl_local.console.visits import Visit
from neonctl_local.errors import ApiError, invalid


async def show_new(visit: Visit, *, error: ApiError | None = None) -> web.StreamResponse:
    """``GET .../branches/new``: the form that creates a branch.

    The query parameter ``parent`` is the id of the parent to select.
    """
    project = await find_project(visit)
    choice = await visit.read(read_choice, project.id)
    defaults = {
        "name": "",
        "parent": _parent(choice, visit.query.get("parent", "")),
        "parent_timestamp": "",
        "parent_lsn": "",
        "data": "parent-data",
        "expires_at": "",
        "compute": "yes",
        "protected": "",
    }
    return visit.page(
        "branch_new.html",
        error=error,
        project=project,
        choice=choice,
        fields=typed_or(visit, defaults),
        lacks_history=visit.lacks_history,
    )


async def create(visit: Visit) -> web.StreamResponse:
    """``POST .../branches/new``: create a branch, with or without a compute."""
    try:
        created = await _create(visit)
    except ApiError as error:
        return await show_new(visit, error=error)
    branch = created.branch
    done = sentence("Branch {} created.", branch.name)
    notice = started(done, branch.project_id, branch.id, created.operations)
    return visit.redirect(branch_path(branch.project_id, branch.id), notice)


async def show(visit: Visit) -> web.StreamResponse:
    """``GET .../branches/{branch_id}``: a branch. A deleted branch can be recovered here."""
    return await show_branch(visit, visit.path["branch_id"])


async def show_branch(
    visit: Visit, branch_id: str, *, error: ApiError | None = None, failed: str = ""
) -> web.StreamResponse:
    """Return the page of a branch, with the error of the form ``failed`` if there is one."""
    try:
        subject = await find_subject(visit, branch_id)
    except ApiError as missing:
        if missing.status != 404:
            raise
        return await _show_deleted(visit, branch_id, error)
    objects = await databases.read(visit, subject.project.id, branch_id)
    url = f"{objects.url}#connect-title"
    expires_at = (subject.branch.expires_at or "").removesuffix("Z")
    return visit.page(
        "branch.html",
        error=error,
        failed=failed,
        subject=subject,
        project=subject.project,
        branch=subject.branch,
        objects=objects,
        connection=await connections.read(
            visit, objects, subject.endpoints, visit.query, choose_url=url
        ),
        new_name=visit.typed("name", subject.branch.name),
        new_expiry=visit.typed("expires_at", expires_at),
        has_postgres=visit.state.databases is not None,
    )


async def rename(visit: Visit) -> web.StreamResponse:
    """``POST .../branches/{branch_id}/rename``."""
    name = visit.typed("name")
    return await _update(visit, "rename", {"name": name}, sentence("Branch renamed to {}.", name))


async def set_expiry(visit: Visit) -> web.StreamResponse:
    """``POST .../branches/{branch_id}/expiry``: an empty time removes the expiry."""
    at = moment(visit.typed("expires_at"))
    done = "The branch does not expire." if at is None else "Expiry of the branch saved."
    return await _update(visit, "expiry", {"expires_at": at}, sentence(done))


async def set_protection(visit: Visit) -> web.StreamResponse:
    """``POST .../branches/{branch_id}/protection``: protect or unprotect a branch."""
    protected = visit.typed("protected") == "yes"
    done = "Branch protected." if protected else "Branch unprotected."
    return await _update(visit, "protection", {"protected": protected}, sentence(done))


async def set_default(visit: Visit) -> web.StreamResponse:
    """``POST .../branches/{branch_id}/default``."""
    try:
        changed = await call_branch(visit, "POST", "/set_as_default", BranchChanged)
    except ApiError as error:
        return await show_branch(visit, visit.path["branch_id"], error=error, failed="default")
    return _redirect(visit, changed, sentence("{} is the default branch.", changed.branch.name))


async def show_delete(visit: Visit, *, error: ApiError | None = None) -> web.StreamResponse:
    """``GET .../branches/{branch_id}/delete``: ask for confirmation, and name what is lost."""
    subject = await find_subject(visit, visit.path["branch_id"])
    objects = await databases.read(visit, subject.project.id, subject.branch.id)
    return visit.page(
        "branch_delete.html",
        error=error,
        subject=subject,
        project=subject.project,
        objects=objects,
    )


async def delete(visit: Visit) -> web.StreamResponse:
    """``POST .../branches/{branch_id}/delete``: delete a branch, ``permanently`` if requested."""
    query = {"hard_delete": "true"} if visit.typed("permanently") else {}
    try:
        response = await call_branch(visit, "DELETE", "", object, query=query)
    except ApiError as error:
        if error.status == 404:
            raise
        return await show_delete(visit, error=error)
    if response is None:
        return visit.redirect(_path(visit), "The branch was deleted before.")
    changed = msgspec.convert(response, BranchChanged)
    return _redirect(visit, changed, sentence("Branch {} deleted.", changed.branch.name))


async def recover(visit: Visit) -> web.StreamResponse:
    """``POST .../branches/{branch_id}/recover``: recover a deleted branch."""
    try:
        changed = await call_branch(visit, "POST", "/recover", BranchChanged)
    except ApiError as error:
        return await show_branch(visit, visit.path["branch_id"], error=error)
    return _redirect(visit, changed, sentence("Branch {} recovered.", changed.branch.name))


async def show_deleted(visit: Visit) -> web.StreamResponse:
    """``GET .../branches/deleted``: the deleted branches that can be recovered, newest first."""
    project = await find_project(visit)
    found = await visit.read(read_recoverable, project.id)
    branches = list_page(found, visit.query, lambda branch: [branch.name, branch.id])
    return visit.page("branches_deleted.html", project=project, branches=branches)


async def _create(visit: Visit) -> BranchChanged:
    project = await find_project(visit)
    typed = visit.typed
    if typed("parent_timestamp").strip() and typed("parent_lsn").strip():
        raise invalid("type a point in time or an LSN of the parent, or neither: not both")
    spec = drop_empty(
        {
            "name": typed("name"),
            "parent_id": await visit.read(find_branch, project.id, typed("parent")),
            "parent_timestamp": moment(typed("parent_timestamp")),
            "parent_lsn": typed("parent_lsn").strip(),
            "init_source": typed("data") if typed("data") != "parent-data" else "",
            "expires_at": moment(typed("expires_at")),
            "protected": bool(typed("protected")),
        }
    )
    body: dict[str, object] = {"branch": spec}
    if typed("compute"):
        body["endpoints"] = [{"type": "read_write"}]
    name = "POST /projects/{project_id}/branches"
    return await visit.call(name, BranchChanged, body=body, project_id=project.id)


def _parent(choice: Choice, wanted: str) -> str:
    """Return the initial value of the parent field: an id from the list, or a name to edit."""
    found = next((branch for branch in choice.branches if branch.id == wanted), None)
    if found is None:
        if wanted and not choice.is_complete:
            return wanted
        found = choice.branches[0]
    return found.id if choice.is_complete else found.name


async def _show_deleted(visit: Visit, branch_id: str, error: ApiError | None) -> web.StreamResponse:
    project = await find_project(visit)
    deleted = await visit.read(read_deleted, project.id, branch_id)
    return visit.page("branch_deleted.html", error=error, project=project, deleted=deleted)


async def _update(
    visit: Visit, form: str, changes: dict[str, object], done: Markup
) -> web.StreamResponse:
    try:
        changed = await call_branch(visit, "PATCH", "", BranchChanged, body={"branch": changes})
    except ApiError as error:
        return await show_branch(visit, visit.path["branch_id"], error=error, failed=form)
    return _redirect(visit, changed, done)


def _path(visit: Visit) -> str:
    return branch_path(visit.path["project_id"], visit.path["branch_id"])


def _redirect(visit: Visit, changed: BranchChanged, done: Markup) -> web.StreamResponse:
    branch = changed.branch
    notice = started(done, branch.project_id, branch.id, changed.operations)
    return visit.redirect(branch_path(branch.project_id, branch.id), notice)
