"""Requests that plan, list and clear the faults and failures of a tenant.

They are not part of Neon's API, so their paths start with ``/local/v1``. Faults do not apply to
them.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

import msgspec

from neonctl_local.engine import accounts, operations
from neonctl_local.engine.api_keys import Principal
from neonctl_local.errors import forbidden, invalid, not_found
from neonctl_local.server import routes
from neonctl_local.server.faults import FailNext, Fault
from neonctl_local.server.tenants.state import TenantState
from neonctl_local.storage.tables import PlannedFailure
from neonctl_local.storage.transactions import Transaction

Answer = Callable[[TenantState, bytes, str], Awaitable[object]]

MOST_PLANS: Final = 100
"""The largest number of active faults and failures that requests and the console can plan."""


class Plans(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a request that plans faults and failures."""

    faults: list[Fault] = []
    failures: list[FailNext] = []


class Planned(msgspec.Struct, frozen=True):
    """A planned fault or failure. ``fired`` is the number of times that it has taken effect."""

    id: str
    fired: int
    plan: Fault | msgspec.Raw


class AllPlanned(msgspec.Struct, frozen=True):
    """The response that lists the planned faults, then the planned failures, each oldest first."""

    planned: list[Planned]


async def check_allowed(state: TenantState, principal: Principal) -> None:
    """Raise 403 for a key that is not a personal key of the first user."""
    if not await state.database.read(accounts.is_first_user, principal.user_id):
        raise forbidden(
            "faults concern the requests of all users, so only the first user can plan them: use "
            "a personal key of that user"
        )


async def show(state: TenantState, content: bytes, id: str) -> AllPlanned:  # noqa: ARG001 - as plan
    """``GET``: list what is planned."""
    faults = [Planned(f"fault-{one.number}", one.fired, one.fault) for one in state.faults.injected]
    failures = await state.database.read(operations.planned_failures)
    return AllPlanned([*faults, *(_of_failure(one) for one in failures)])


async def plan(state: TenantState, content: bytes, id: str) -> AllPlanned:
    """``POST``: plan all of the faults and failures, or none of them. List what is planned."""
    try:
        plans = msgspec.json.decode(content, type=Plans)
    except msgspec.DecodeError as error:
        raise invalid(f"the body is invalid: {error}") from None
    planned = len((await show(state, content, id)).planned)
    if planned + len(plans.faults) + len(plans.failures) > MOST_PLANS:
        raise invalid(f"more than {MOST_PLANS} faults and failures would be planned: clear some")
    try:
        for fault in plans.faults:
            routes.check(fault.route)
    except ValueError as error:
        raise invalid(str(error)) from None
    await state.database.run(_plan_failures, plans.failures)
    for fault in plans.faults:
        state.faults.inject(fault)
    return await show(state, content, id)


async def clear(state: TenantState, content: bytes, id: str) -> AllPlanned:
    """``DELETE``: clear the fault or failure with this id, or all of them if the id is empty."""
    if not id:
        state.faults.clear()
        await state.database.run(operations.clear_planned_failures)
    elif not await _remove(state, id):
        raise not_found("fault", id)
    return await show(state, content, "")


ANSWERS: Final[Mapping[str, Answer]] = {"GET": show, "POST": plan, "DELETE": clear}
"""The functions that answer requests for FAULTS_PATH, by method."""


def _plan_failures(tx: Transaction, failures: Sequence[FailNext]) -> None:
    for one in failures:
        operations.fail_next(tx, one.action, one, one.times, one.after, one.branch)


async def _remove(state: TenantState, id: str) -> bool:
    kind, _, number = id.partition("-")
    if not (number.isascii() and number.isdigit() and len(number) < 10):
        return False
    if kind == "fault":
        return state.faults.remove(int(number))
    if kind == "failure":
        return await state.database.run(operations.remove_planned_failure, int(number))
    return False


def _of_failure(failure: PlannedFailure) -> Planned:
    plain = FailNext(action=failure.action)
    plan = {"action": failure.action} | {
        name: value
        for name in FailNext.__struct_fields__
        if (value := getattr(failure, name)) != getattr(plain, name)
    }
    return Planned(f"failure-{failure.id}", failure.fired, msgspec.Raw(msgspec.json.encode(plan)))
