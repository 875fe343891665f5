"""Planned faults of requests, and planned failures of operations."""

import math
from collections.abc import Mapping
from typing import Final, TypeVar

import msgspec
from aiohttp import web

from neonctl_local.console import instruments
from neonctl_local.console.fields import natural_number
from neonctl_local.console.visits import Visit
from neonctl_local.engine import operations
from neonctl_local.engine.lifecycle import PLANNED_ERROR
from neonctl_local.errors import ApiError, invalid
from neonctl_local.server.fault_requests import MOST_PLANS
from neonctl_local.server.faults import PLANNED, PRESETS, Fault, preset
from neonctl_local.server.routes import ROUTES, check
from neonctl_local.server.tenant import Tenant
from neonctl_local.settings import ACTIONS

Default = TypeVar("Default", int, None)

KINDS: Final = (
    ("status", "Status", "Send a status and a message."),
    ("delay", "Delay", "Wait, then send the real response."),
    ("drop", "Drop", "Close the connection without a response."),
    ("hang", "Hang", "Send nothing until the client gives up."),
    ("html", "HTML", "Send an HTML page, like a proxy."),
    ("truncate", "Truncate", "Close the connection in the middle of the response."),
)
WHEN: Final = (
    ("before", "Instead of handling the request"),
    ("after", "After handling the request"),
)
ROUTE_CHOICES: Final = (("*", "All requests"), *((str(route), str(route)) for route in ROUTES))
PRESET_CHOICES: Final = tuple((name, name) for name in PRESETS)

_DEFAULTS: Final = {"html": 502}
_LARGEST: Final = 10**9


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """An active fault, as the page shows it."""

    number: int
    route: str
    rules: str
    effect: str
    fired: int
    times: int | None
    probability: float
    when: str


async def show(
    visit: Visit,
    *,
    fault_error: ApiError | None = None,
    failure_error: ApiError | None = None,
) -> web.StreamResponse:
    """``GET /console/faults``."""
    await instruments.check_first_user(visit)
    error = fault_error or failure_error
    active = visit.state.faults.injected
    return visit.page(
        "faults.html",
        error=error,
        faults=[
            Shown(
                number=injected.number,
                route="All requests" if injected.fault.route == "*" else injected.fault.route,
                rules=rules_of(injected.fault),
                effect=effect_of(injected.fault),
                fired=injected.fired,
                times=injected.fault.times,
                probability=injected.fault.probability,
                when=injected.fault.when,
            )
            for injected in active[:MOST_PLANS]
        ],
        more=len(active) - MOST_PLANS,
        failures=await visit.read(operations.planned_failures),
        fault_error=fault_error,
        failure_error=failure_error,
        presets=PRESET_CHOICES,
        routes=ROUTE_CHOICES,
        kinds=KINDS,
        when=WHEN,
        actions=sorted(ACTIONS),
        statuses=sorted(PLANNED, key=lambda status: status != "failed"),
        default_error=PLANNED_ERROR,
    )


async def plan(visit: Visit) -> web.StreamResponse:
    """``POST /console/faults/plan``: activate a fault."""
    await instruments.check_first_user(visit)
    try:
        if len(visit.state.faults.injected) >= MOST_PLANS:
            raise invalid(f"there are {MOST_PLANS} active faults already: clear some of them")
        visit.state.faults.inject(fault_of(visit.form))
    except ApiError as error:
        return await show(visit, fault_error=error)
    return visit.redirect("/faults", "Fault planned.")


async def plan_preset(visit: Visit) -> web.StreamResponse:
    """``POST /console/faults/presets``: activate the faults of a preset."""
    await instruments.check_first_user(visit)
    try:
        faults = preset(visit.form.get("preset", ""))
        if len(visit.state.faults.injected) + len(faults) > MOST_PLANS:
            raise invalid(f"there are {MOST_PLANS} active faults already: clear some of them")
    except ValueError as error:
        return await show(visit, fault_error=invalid(str(error)))
    except ApiError as error:
        return await show(visit, fault_error=error)
    for fault in faults:
        visit.state.faults.inject(fault)
    return visit.redirect("/faults", "Faults planned.")


async def clear(visit: Visit) -> web.StreamResponse:
    """``POST /console/faults/clear``: remove one fault, or all of them."""
    await instruments.check_first_user(visit)
    chosen = visit.form.get("fault", "")
    if chosen == "all":
        visit.state.faults.clear()
        return visit.redirect("/faults", "All faults cleared.")
    if not visit.state.faults.remove(natural_number(chosen) or 0):
        return visit.redirect("/faults", "The fault was cleared before.")
    return visit.redirect("/faults", "Fault cleared.")


async def plan_failure(visit: Visit) -> web.StreamResponse:
    """``POST /console/faults/failures/plan``: make the next operations of an action fail."""
    await instruments.check_first_user(visit)
    form = visit.form
    try:
        await Tenant(visit.state).fail_next(
            form.get("operation", ""),
            times=_whole(form, "failure_times", "Times", 1),
            after=_whole(form, "failure_after", "After", 0),
            branch=form.get("failure_branch", "").strip() or None,
            retry_after=_decimal(form, "retry_after", "Retry after"),
            show_retry_at="hide_retry_at" not in form,
            status=form.get("failure_status", ""),
            error=form.get("failure_message", "").strip() or PLANNED_ERROR,
        )
    except ValueError as error:
        return await show(visit, failure_error=invalid(str(error)))
    except ApiError as error:
        return await show(visit, failure_error=error)
    return visit.redirect("/faults", "Failure planned.")


async def clear_failure(visit: Visit) -> web.StreamResponse:
    """``POST /console/faults/failures/clear``: remove one planned failure, or all of them."""
    await instruments.check_first_user(visit)
    chosen = visit.form.get("failure", "")
    if chosen == "all":
        await visit.state.database.run(operations.clear_planned_failures)
        return visit.redirect("/faults", "All planned failures cleared.")
    failure_id = natural_number(chosen) or 0
    await visit.state.database.run(operations.remove_planned_failure, failure_id)
    return visit.redirect("/faults", "Planned failure cleared.")


def fault_of(form: Mapping[str, str]) -> Fault:
    """Return the fault that a form describes. Raise 400 if a field is invalid, naming it."""
    kind, route = form.get("kind", ""), form.get("route", "")
    if kind not in {name for name, _, _ in KINDS}:
        raise invalid(f"the kind is {kind[:100]!r}: choose one of the list")
    delay = _decimal(form, "delay", "Delay") or 0.0
    if kind == "delay" and not delay:
        raise invalid("the delay is missing: enter the seconds to wait")
    settings: dict[str, object] = {
        "route": route,
        "branch": form.get("branch", "").strip() or None,
        "after": _whole(form, "after", "After", 0),
        "every": _whole(form, "every", "Every", 1),
        "times": _whole(form, "times", "Times", None),
        "probability": _percent(form),
        "delay": delay,
        "when": form.get("when", "before"),
    }
    if kind in {"status", "html"}:
        settings["status"] = _whole(form, "status", "Status", _DEFAULTS.get(kind, 503))
        settings["message"] = form.get("message", "").strip() or "a planned fault"
    if kind in {"drop", "hang", "html", "truncate"}:
        settings[kind] = True
    try:
        check(route)
        return msgspec.convert(settings, Fault)
    except ValueError as error:
        raise invalid(str(error).partition(" - at `$")[0]) from None


def rules_of(fault: Fault) -> str:
    """Describe which requests to its route a fault affects. Return "" for all requests."""
    rules = [f"branch {fault.branch}"] if fault.branch else []
    if fault.after:
        rules.append(f"after {fault.after}")
    if fault.every > 1:
        rules.append(f"one in {fault.every}")
    if fault.seconds is not None:
        rules.append(f"for {fault.seconds:g} s")
    return ", ".join(rules)


def effect_of(fault: Fault) -> str:
    """Return what a fault does, in the order in which it does it."""
    effects = [f"wait {fault.delay:g} s"] if fault.delay else []
    if fault.hang:
        effects.append("send nothing")
    elif fault.drop:
        effects.append("close the connection")
    elif fault.html:
        effects.append(f"HTML page with status {fault.status or 502}: {fault.message}")
    elif fault.status is not None:
        effects.append(f"status {fault.status}: {fault.message}")
    elif fault.truncate:
        effects.append("cut the response")
    return ", then ".join(effects)


def _whole(form: Mapping[str, str], name: str, label: str, default: Default) -> int | Default:
    """Return a whole number from a form, or the default if the field is empty."""
    text = form.get(name, "").strip()
    if not text:
        return default
    number = natural_number(text)
    if number is None or number > _LARGEST:
        raise invalid(f"{label} is {text[:100]!r}: expected a whole number, such as 1")
    return number


def _decimal(form: Mapping[str, str], name: str, label: str) -> float | None:
    """Return the seconds from a form, or None if the field is empty."""
    text = form.get(name, "").strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= _LARGEST:
        raise invalid(f"{label} is {text[:100]!r}: expected seconds, 0 or more, such as 1.5")
    return value


def _percent(form: Mapping[str, str]) -> float:
    """Return the probability from a form, which contains it in percent."""
    text = form.get("probability", "").strip() or "100"
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value <= 100:
        raise invalid(f"Probability is {text[:100]!r}: expected a percentage, such as 50")
    return value / 100
