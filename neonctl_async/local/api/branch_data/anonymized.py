"""Anonymized branches: their masking rules, and the runs that apply them.

Where a branch stands is where two operations stand: the create_branch that initializes it, and
the apply_config of its latest run.
"""

from typing import Final

import msgspec
from msgspec.structs import replace

from neonctl_async.local.api import branches
from neonctl_async.local.api.request import access, bodies
from neonctl_async.local.api.request.calls import (
    Call,
    Json,
    Response,
    present,
    raw,
    respond,
    stored,
)
from neonctl_async.local.clock import in_seconds
from neonctl_async.local.engine import computes, lifecycle, operations
from neonctl_async.local.engine.api_keys import Principal
from neonctl_async.local.engine.operations import Chain
from neonctl_async.local.errors import conflict, not_found
from neonctl_async.local.storage.database import Transaction
from neonctl_async.local.storage.tables import AnonymizedBranch, Branch, Operation, User

STARTABLE: Final = ("initialized", "anonymized", "error")
"""The states in which a run can begin."""


def create(tx: Transaction, call: Call) -> Response:
    """``POST /projects/{project_id}/branch_anonymized``: as a branch, then a run if asked for."""
    project = access.project(tx, call)
    body = call.body(bodies.AnonymizedBranchCreate)
    wanted = replace(body.branch_create, annotation_value=body.annotation_value)
    branch, made, chain = branches.make(tx, project, call.principal, wanted)
    anonymized = AnonymizedBranch(
        id=branch.id,
        masking_rules=stored(body.masking_rules),
        created_at=tx.now,
        updated_at=tx.now,
        creation=chain.operations[0].id,
    )
    tx.insert(anonymized)
    if body.start_anonymization:
        _run(tx, branch, anonymized, call.principal, chain)
        branch = tx.get(Branch, branch.id)
    return branches.created(tx, branch, made, chain)


def get_rules(tx: Transaction, call: Call) -> Response:
    """``GET .../branches/{branch_id}/masking_rules``."""
    _, anonymized = _branch(tx, call)
    return respond({"masking_rules": raw(anonymized.masking_rules)})


def update_rules(tx: Transaction, call: Call) -> Response:
    """``PATCH .../branches/{branch_id}/masking_rules``: replaces all; the next run applies them."""
    _, anonymized = _branch(tx, call)
    rules = stored(call.body(bodies.MaskingRulesUpdate).masking_rules)
    tx.update(anonymized, masking_rules=rules, updated_at=tx.now)
    return respond({"masking_rules": raw(rules)})


def get_status(tx: Transaction, call: Call) -> Response:
    """``GET .../branches/{branch_id}/anonymized_status``."""
    branch, anonymized = _branch(tx, call)
    return respond(_status(tx, branch, anonymized))


def start(tx: Transaction, call: Call) -> Response:
    """``POST .../branches/{branch_id}/anonymize``: apply_config, on a compute that runs if any."""
    branch, anonymized = _branch(tx, call)
    state = _status(tx, branch, anonymized)["state"]
    if state not in STARTABLE:
        raise conflict(
            f"branch {branch.id!r} is {state}: anonymization starts from {', '.join(STARTABLE)}"
        )
    chain = operations.begin(tx, branch.project_id, branch.id)
    anonymized = _run(tx, branch, anonymized, call.principal, chain)
    return respond(_status(tx, branch, anonymized))


def begin_anew(tx: Transaction, branch_id: str, creation: Operation) -> None:
    """Have a branch initialized by other data, none of which is masked, if it is anonymized."""
    tx.execute(
        "UPDATE anonymized_branches SET creation = ?, run = NULL, triggered_by = NULL, "
        "masked_columns = 0, updated_at = ? WHERE id = ?",
        *(creation.id, tx.now, branch_id),
    )


def _branch(tx: Transaction, call: Call) -> tuple[Branch, AnonymizedBranch]:
    _, branch = access.branch(tx, call)
    anonymized = tx.first(AnonymizedBranch, "WHERE id = ?", branch.id)
    if anonymized is None:
        raise not_found("anonymized branch", branch.id)
    return branch, anonymized


def _run(
    tx: Transaction,
    branch: Branch,
    anonymized: AnonymizedBranch,
    principal: Principal,
    chain: Chain,
) -> AnonymizedBranch:
    computes.configure(tx, branch, chain)
    rules = msgspec.json.decode(anonymized.masking_rules, type=list[bodies.MaskingRule])
    columns = {
        (rule.database_name, rule.schema_name, rule.table_name, rule.column_name) for rule in rules
    }
    return tx.update(
        anonymized,
        run=chain.operations[-1].id,
        triggered_by=principal.created_by,
        masked_columns=len(columns),
        updated_at=tx.now,
    )


def _status(tx: Transaction, branch: Branch, anonymized: AnonymizedBranch) -> Json:
    creation = tx.get(Operation, anonymized.creation)
    run = tx.get(Operation, anonymized.run) if anonymized.run else None
    initialized = creation.succeeds and creation.settles_at <= tx.now
    current, states = (run, _RUN) if run and initialized else (creation, _CREATION)
    seen = lifecycle.at(current, tx.now)
    state = states[0] if tx.now < current.settles_at else states[1 if current.succeeds else 2]
    failed = state == states[2]
    return present(
        {
            "project_id": branch.project_id,
            "branch_id": branch.id,
            "state": state,
            "status_message": seen.error,
            "created_at": in_seconds(anonymized.created_at),
            "updated_at": in_seconds(max(anonymized.updated_at, seen.updated_at)),
            "failed_at": in_seconds(current.settles_at) if failed else None,
            "last_run": _last_run(tx, anonymized, run) if run and state != _CREATION[2] else None,
        }
    )


def _last_run(tx: Transaction, anonymized: AnonymizedBranch, run: Operation) -> Json:
    user = tx.first(User, "WHERE id = ?", anonymized.triggered_by)
    started = run.runs and run.starts_at <= tx.now
    return present(
        {
            "started_at": in_seconds(run.starts_at) if started else None,
            "completed_at": in_seconds(run.settles_at) if run.settles_at <= tx.now else None,
            "triggered_by": anonymized.triggered_by,
            "triggered_by_username": None if user is None else user.name,
            "masked_columns": anonymized.masked_columns,
        }
    )


# The states of an operation that goes on, that finished, that failed.
_CREATION: Final = ("created", "initialized", "initialization_error")
_RUN: Final = ("anonymizing", "anonymized", "error")
