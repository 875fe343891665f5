"""The forms that replace the content of a branch: reset from the parent, and restore."""

from typing import Final

from aiohttp import web
from markupsafe import Markup

from neonctl_local.console.fields import drop_empty, moment, typed_or
from neonctl_local.console.notices import sentence, started
from neonctl_local.console.pages.branch_context import (
    BranchName,
    Subject,
    call_branch,
    find_branch,
    find_subject,
    read_choice,
)
from neonctl_local.console.records import Branch, BranchChanged
from neonctl_local.console.visits import Visit
from neonctl_local.errors import ApiError, invalid, unprocessable

_MAXIMUM_NAME: Final = 256


async def show_reset(visit: Visit, *, error: ApiError | None = None) -> web.StreamResponse:
    """``GET .../branches/{branch_id}/reset``: ask for confirmation, and name what is lost."""
    subject = await find_subject(visit, visit.path["branch_id"])
    kept = _old_name(visit, subject) if subject.relatives.child_count else ""
    return visit.page(
        "branch_reset.html",
        error=error,
        subject=subject,
        project=subject.project,
        fields=typed_or(visit, {"preserve_under_name": kept}),
    )


async def reset(visit: Visit) -> web.StreamResponse:
    """``POST .../branches/{branch_id}/reset``: reset a branch to the state of its parent."""
    try:
        subject = await find_subject(visit, visit.path["branch_id"])
        parent_id = subject.branch.parent_id
        if parent_id is None:
            raise unprocessable("a root branch has no parent: restore it from another branch")
        changed = await _restore(visit, {"source_branch_id": parent_id})
    except ApiError as error:
        return await show_reset(visit, error=error)
    return _redirect(visit, subject, changed, "Branch {} reset from its parent.")


async def show_restore(visit: Visit, *, error: ApiError | None = None) -> web.StreamResponse:
    """``GET .../branches/{branch_id}/restore``: choose what the branch is restored from."""
    subject = await find_subject(visit, visit.path["branch_id"])
    choice = await visit.read(read_choice, subject.project.id)
    source: Branch | BranchName = subject.branch
    if subject.relatives.parent is not None:  # only root branches are restored from themselves
        source = subject.relatives.parent
        choice = choice.without(subject.branch.id)
    defaults = {
        "source": source.id if choice.is_complete else source.name,
        "source_timestamp": "",
        "source_lsn": "",
        "preserve_under_name": _old_name(visit, subject),
    }
    return visit.page(
        "branch_restore.html",
        error=error,
        subject=subject,
        project=subject.project,
        choice=choice,
        fields=typed_or(visit, defaults),
        lacks_history=visit.lacks_history,
    )


async def restore(visit: Visit) -> web.StreamResponse:
    """``POST .../branches/{branch_id}/restore``: restore a branch from itself or another one."""
    try:
        subject = await find_subject(visit, visit.path["branch_id"])
        changed = await _restore(visit, await _source(visit, subject))
    except ApiError as error:
        return await show_restore(visit, error=error)
    return _redirect(visit, subject, changed, "Branch {} restored.")


async def _source(visit: Visit, subject: Subject) -> dict[str, object]:
    at, lsn = moment(visit.typed("source_timestamp")), visit.typed("source_lsn").strip()
    if at and lsn:
        raise invalid("type a point in time or an LSN, or neither: not both")
    source = await visit.read(find_branch, subject.project.id, visit.typed("source"))
    if source == subject.branch.id and not (at or lsn):
        raise invalid(
            "a restore of a branch from itself requires a point in time or an LSN: "
            "type one of them, or choose another branch"
        )
    return {"source_branch_id": source, "source_timestamp": at, "source_lsn": lsn}


async def _restore(visit: Visit, source: dict[str, object]) -> BranchChanged:
    body = drop_empty(source | {"preserve_under_name": visit.typed("preserve_under_name")})
    return await call_branch(visit, "POST", "/restore", BranchChanged, body=body)


def _old_name(visit: Visit, subject: Subject) -> str:
    """Return a name for the replaced state of a branch, such as ``main_old_20260101_120000``."""
    suffix = visit.state.utc_now().strftime("_old_%Y%m%d_%H%M%S")
    return subject.branch.name[: _MAXIMUM_NAME - len(suffix)] + suffix


def _redirect(visit: Visit, subject: Subject, changed: BranchChanged, text: str) -> web.Response:
    done = sentence(text, subject.branch.name)
    if kept := visit.typed("preserve_under_name"):
        done = Markup("{} {}").format(done, sentence("Its previous state is kept as {}.", kept))
    notice = started(done, subject.project.id, subject.branch.id, changed.operations)
    return visit.redirect(subject.path, notice)
