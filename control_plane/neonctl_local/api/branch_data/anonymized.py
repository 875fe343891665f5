"""Anonymized branches: their masking rules, and the runs that apply the rules.

The state of a branch is derived from two operations: the ``create_branch`` that initializes it, and
the ``apply_config`` of its latest run.
"""

from typing import Final

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from neonctl_local.api import branches
from neonctl_local.api.request import access, bodies
from neonctl_local.api.request.calls import (
    Call,
    Json,
    Response,
    drop_none,
    json_text,
    raw_json,
    respond,
)
from neonctl_local.clock import in_seconds
from neonctl_local.engine import computes, lifecycle, operations
from neonctl_local.engine.api_keys import Principal
from neonctl_local.engine.operations import OperationChain
from neonctl_local.errors import conflict, invalid, not_found, unprocessable
from neonctl_local.storage.tables import AnonymizedBranch, Branch, Endpoint, Operation, User
from neonctl_local.storage.transactions import Transaction

STARTABLE: Final = ("initialized", "anonymized", "error")
"""The states in which a run can be started."""


def create(tx: Transaction, call: Call) -> Response:
    """``POST .../branch_anonymized``: create a branch and, if requested, start a run."""
    project = access.project(tx, call)
    _check_emulated(tx)
    body = call.body(bodies.AnonymizedBranchCreate)
    _check_rules(body.masking_rules)
    settings = msgspec.json.decode(project.settings, type=bodies.ProjectSettings)
    if settings.allowed_ips is not UNSET and settings.allowed_ips.ips:
        raise unprocessable(
            "a project with an IP allow list has no anonymized branches: set its ips to [] first"
        )
    spec = replace(body.branch_create, annotation_value=body.annotation_value)
    if all(endpoint.type != "read_write" for endpoint in spec.endpoints):
        spec = replace(spec, endpoints=[*spec.endpoints, bodies.EndpointSpec(type="read_write")])
    branch, created, chain = branches.add(tx, project, call, spec)
    created = [_with_anon(tx, endpoint) for endpoint in created]
    anonymized = AnonymizedBranch(
        id=branch.id,
        masking_rules=json_text(body.masking_rules),
        created_at=tx.now,
        updated_at=tx.now,
        creation=next(one.id for one in chain.operations if one.action == "create_branch"),
    )
    tx.insert(anonymized)
    if body.start_anonymization:
        _run(tx, branch, anonymized, call.principal, chain)
        branch = tx.get(Branch, branch.id)
    return branches.created_response(tx, branch, created, chain)


def get_rules(tx: Transaction, call: Call) -> Response:
    """``GET .../branches/{branch_id}/masking_rules``."""
    _, anonymized = _branch(tx, call)
    return respond({"masking_rules": raw_json(anonymized.masking_rules)})


def update_rules(tx: Transaction, call: Call) -> Response:
    """``PATCH .../branches/{branch_id}/masking_rules``: replace all rules, for the next run."""
    _, anonymized = _branch(tx, call)
    sent = call.part("masking_rules", list[bodies.MaskingRule])
    _check_rules(sent)
    rules = json_text(sent)
    tx.update(anonymized, masking_rules=rules, updated_at=tx.now)
    return respond({"masking_rules": raw_json(rules)})


def get_status(tx: Transaction, call: Call) -> Response:
    """``GET .../branches/{branch_id}/anonymized_status``."""
    branch, anonymized = _branch(tx, call)
    return respond(_status(tx, branch, anonymized))


def start(tx: Transaction, call: Call) -> Response:
    """``POST .../branches/{branch_id}/anonymize``: start an ``apply_config`` operation."""
    branch, anonymized = _branch(tx, call)
    state = _status(tx, branch, anonymized)["state"]
    if state not in STARTABLE:
        raise conflict(
            f"branch {branch.id!r} is {state}: anonymization requires the state "
            f"{', '.join(STARTABLE[:-1])} or {STARTABLE[-1]}"
        )
    _check_emulated(tx)
    chain = operations.start_chain(tx, branch.project_id, branch.id)
    anonymized = _run(tx, branch, anonymized, call.principal, chain)
    return respond(_status(tx, branch, anonymized))


def _check_rules(rules: list[bodies.MaskingRule]) -> None:
    for number, rule in enumerate(rules):
        if rule.masking_function is not UNSET and rule.masking_value is not UNSET:
            raise invalid(
                f"invalid request: masking_rules[{number}].masking_value: not together with "
                "masking_function"
            )


def _with_anon(tx: Transaction, endpoint: Endpoint) -> Endpoint:
    """Make a read_write compute preload only the library that masks data."""
    if endpoint.type != "read_write":
        return endpoint
    settings = msgspec.json.decode(endpoint.settings, type=bodies.EndpointSettings)
    anon = bodies.PreloadLibraries(use_defaults=False, enabled_libraries=["anon"])
    return tx.update(endpoint, settings=json_text(replace(settings, preload_libraries=anon)))


def _check_emulated(tx: Transaction) -> None:
    if tx.rules.postgres is not None:
        raise unprocessable(
            "a local Postgres cannot anonymize branches, because it has no extension 'anon': "
            "create a branch without masking rules, or one with init_source 'schema-only'"
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
    chain: OperationChain,
) -> AnonymizedBranch:
    computes.configure_branch(tx, branch, chain)
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
    operation_state = lifecycle.state_at(current, tx.now)
    state = states[0] if tx.now < current.settles_at else states[1 if current.succeeds else 2]
    failed = state == states[2]
    return drop_none(
        {
            "project_id": branch.project_id,
            "branch_id": branch.id,
            "state": state,
            "status_message": operation_state.error,
            "created_at": in_seconds(anonymized.created_at),
            "updated_at": in_seconds(max(anonymized.updated_at, operation_state.updated_at)),
            "failed_at": in_seconds(current.settles_at) if failed else None,
            "last_run": _last_run(tx, anonymized, run) if run and state != _CREATION[2] else None,
        }
    )


def _last_run(tx: Transaction, anonymized: AnonymizedBranch, run: Operation) -> Json:
    user = tx.first(User, "WHERE id = ?", anonymized.triggered_by)
    started = run.runs and run.starts_at <= tx.now
    return drop_none(
        {
            "started_at": in_seconds(run.starts_at) if started else None,
            "completed_at": in_seconds(run.settles_at) if run.settles_at <= tx.now else None,
            "triggered_by": anonymized.triggered_by,
            "triggered_by_username": None if user is None else user.name,
            "masked_columns": anonymized.masked_columns,
        }
    )


# The states while an operation is pending, after it has succeeded, and after it has failed.
_CREATION: Final = ("created", "initialized", "initialization_error")
_RUN: Final = ("anonymizing", "anonymized", "error")
