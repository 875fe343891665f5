"""The actions on computes, and the forms that create, change and delete a compute."""

import msgspec
from aiohttp import web

from neonctl_local.console.fields import drop_empty, number, typed_or, whole_number
from neonctl_local.console.notices import sentence, started
from neonctl_local.console.pages.branch_context import (
    Subject,
    branch_path,
    call_endpoint,
    find_endpoint,
    find_subject,
)
from neonctl_local.console.pages.branches import show_branch
from neonctl_local.console.records import Endpoint, EndpointChanged
from neonctl_local.console.visits import Visit
from neonctl_local.errors import ApiError


async def show(visit: Visit) -> web.StreamResponse:
    """``GET .../computes/{endpoint_id}``: redirect to the branch of the compute."""
    endpoint = await find_endpoint(visit)
    return visit.redirect(branch_path(visit.path["project_id"], endpoint.branch_id))


async def start(visit: Visit) -> web.StreamResponse:
    """``POST .../computes/{endpoint_id}/start``."""
    return await _act(visit, "start", "The compute is starting.", "The compute was active already.")


async def suspend(visit: Visit) -> web.StreamResponse:
    """``POST .../computes/{endpoint_id}/suspend``."""
    idle = "The compute was suspended already."
    return await _act(visit, "suspend", "The compute is being suspended.", idle)


async def restart(visit: Visit) -> web.StreamResponse:
    """``POST .../computes/{endpoint_id}/restart``."""
    return await _act(visit, "restart", "The compute is restarting.")


async def show_new(visit: Visit, *, error: ApiError | None = None) -> web.StreamResponse:
    """``GET .../branches/{branch_id}/computes/new``: the form that adds a compute to a branch."""
    subject = await find_subject(visit, visit.path["branch_id"])
    is_writable = any(endpoint.type == "read_write" for endpoint in subject.endpoints)
    defaults = {"type": "read_only" if is_writable else "read_write", "min": "", "max": ""}
    return visit.page(
        "compute_new.html",
        error=error,
        subject=subject,
        project=subject.project,
        is_writable=is_writable,
        fields=typed_or(visit, defaults | {"suspend_timeout": ""}),
    )


async def create(visit: Visit) -> web.StreamResponse:
    """``POST .../branches/{branch_id}/computes/new``: create and start a compute."""
    try:
        spec = {"branch_id": visit.path["branch_id"], "type": visit.typed("type")} | _sizes(visit)
        name = "POST /projects/{project_id}/endpoints"
        changed = await visit.call(
            name, EndpointChanged, body={"endpoint": spec}, project_id=visit.path["project_id"]
        )
    except ApiError as error:
        return await show_new(visit, error=error)
    return _redirect(visit, changed, "Compute {} created.")


async def show_edit(visit: Visit, *, error: ApiError | None = None) -> web.StreamResponse:
    """``GET .../computes/{endpoint_id}/edit``: the form that changes a compute."""
    endpoint, subject = await _find(visit)
    defaults = {
        "min": f"{endpoint.autoscaling_limit_min_cu:g}",
        "max": f"{endpoint.autoscaling_limit_max_cu:g}",
        "suspend_timeout": str(endpoint.suspend_timeout_seconds),
        "disabled": "yes" if endpoint.disabled else "",
    }
    return visit.page(
        "compute_edit.html",
        error=error,
        subject=subject,
        project=subject.project,
        endpoint=endpoint,
        fields=typed_or(visit, defaults),
    )


async def edit(visit: Visit) -> web.StreamResponse:
    """``POST .../computes/{endpoint_id}/edit``: change the settings of a compute."""
    try:
        changes = _sizes(visit) | {"disabled": bool(visit.typed("disabled"))}
        changed = await call_endpoint(
            visit, "PATCH", "", EndpointChanged, body={"endpoint": changes}
        )
    except ApiError as error:
        return await show_edit(visit, error=error)
    return _redirect(visit, changed, "Compute {} changed.")


async def show_delete(visit: Visit, *, error: ApiError | None = None) -> web.StreamResponse:
    """``GET .../computes/{endpoint_id}/delete``: ask for confirmation, and name what is lost."""
    endpoint, subject = await _find(visit)
    return visit.page(
        "compute_delete.html",
        error=error,
        subject=subject,
        project=subject.project,
        endpoint=endpoint,
    )


async def delete(visit: Visit) -> web.StreamResponse:
    """``POST .../computes/{endpoint_id}/delete``: suspend and delete a compute."""
    endpoint = await find_endpoint(visit)
    try:
        response = await call_endpoint(visit, "DELETE", "", object)
    except ApiError as error:
        return await show_delete(visit, error=error)
    if response is None:
        path = branch_path(visit.path["project_id"], endpoint.branch_id)
        return visit.redirect(path, "The compute was deleted before.")
    return _redirect(visit, msgspec.convert(response, EndpointChanged), "Compute {} deleted.")


async def _act(visit: Visit, action: str, done: str, nothing: str = "") -> web.StreamResponse:
    """Send an action. If it does not start an operation, show the notice ``nothing``."""
    endpoint = await find_endpoint(visit)
    try:
        changed = await call_endpoint(visit, "POST", f"/{action}", EndpointChanged)
    except ApiError as error:
        return await show_branch(visit, endpoint.branch_id, error=error, failed="compute")
    return _redirect(visit, changed, done if changed.operations else nothing)


async def _find(visit: Visit) -> tuple[Endpoint, Subject]:
    endpoint = await find_endpoint(visit)
    return endpoint, await find_subject(visit, endpoint.branch_id)


def _sizes(visit: Visit) -> dict[str, object]:
    typed = visit.typed
    return drop_empty(
        {
            "autoscaling_limit_min_cu": number("The minimum size", typed("min"), "0.25"),
            "autoscaling_limit_max_cu": number("The maximum size", typed("max"), "2"),
            "suspend_timeout_seconds": whole_number(
                "The suspend timeout", typed("suspend_timeout"), "300"
            ),
        }
    )


def _redirect(visit: Visit, changed: EndpointChanged, text: str) -> web.Response:
    """Redirect to the branch, or to the dashboard if the field ``back`` names it."""
    project_id, branch_id = visit.path["project_id"], changed.endpoint.branch_id
    done = sentence(text, changed.endpoint.id)
    notice = started(done, project_id, branch_id, changed.operations)
    if visit.typed("back") == "dashboard":
        return visit.redirect(f"/projects/{project_id}?branch={branch_id}", notice)
    return visit.redirect(branch_path(project_id, branch_id), notice)
