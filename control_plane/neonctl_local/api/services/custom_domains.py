"""Custom domains, which point to the functions of a branch.

The local control plane has no functions and no DNS, so every lower-case DNS label is accepted as
the slug of a function, and every domain becomes active after the duration of an operation.
"""

import re
from typing import Final

from neonctl_local.api.request import access, paging
from neonctl_local.api.request.bodies import Body
from neonctl_local.api.request.calls import Call, Json, Response, respond
from neonctl_local.clock import span
from neonctl_local.engine import computes
from neonctl_local.errors import ApiError, conflict, invalid, not_found
from neonctl_local.storage.access_tables import CustomDomain
from neonctl_local.storage.tables import Branch, Project
from neonctl_local.storage.transactions import Transaction


class CustomDomainRegister(Body, frozen=True):
    """A domain to register, and the function that it points to."""

    domain: str
    entity_type: str
    entity_id: str


_MAX_LIMIT: Final = 1000
_LABEL: Final = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_SLUG: Final = re.compile(_LABEL)
_DOMAIN: Final = re.compile(rf"(?=.{{1,253}}\Z)(?:{_LABEL}\.)+(?!\d+\Z){_LABEL}")
_RESERVED: Final = re.compile(
    r"(?:.+\.)?(?:neon\.(?:tech|build|com|invalid)|internal|local|localhost)"
)

_LIVE: Final = (
    "SELECT count(*) FROM branches JOIN projects ON projects.id = branches.project_id "
    "WHERE branches.id = ? AND branches.deleted_at IS NULL AND projects.deleted_at IS NULL"
)


def list_branch(tx: Transaction, call: Call) -> Response:
    """``GET .../branches/{branch_id}/custom-domains``: newest first."""
    project, branch = access.branch(tx, call)
    page = paging.SortedPage.from_call(call, ("created_at",), "created_at", _MAX_LIMIT)
    where, values = page.clauses("branch_id = ?", branch.id)
    domains, pagination = page.paginate(tx.select(CustomDomain, where, *values))
    shown = [_record(tx, project, domain) for domain in domains]
    return respond({"custom_domains": shown, "pagination": pagination})


def register(tx: Transaction, call: Call) -> Response:
    """``POST .../custom-domains``: register a domain.

    Registering it for the same function again changes nothing.
    """
    project, branch = access.branch(tx, call)
    body = call.body(CustomDomainRegister)
    if body.entity_type != "function":
        raise ApiError(
            400,
            f"invalid request: entity_type: {body.entity_type!r} is not supported: use 'function'",
            code="invalid_entity_type",
        )
    name = _normalized(body.domain)
    if not _SLUG.fullmatch(body.entity_id):
        raise not_found("function", body.entity_id)
    found = tx.first(CustomDomain, "WHERE id = ?", name)
    if found is not None and tx.number(_LIVE, found.branch_id):
        if (found.branch_id, found.entity_id) != (branch.id, body.entity_id):
            raise conflict(f"the domain {name!r} is already registered: use another domain")
        return respond(_record(tx, project, found), 201)
    return respond(_record(tx, project, _insert(tx, branch, name, body)), 201)


def delete(tx: Transaction, call: Call) -> Response:
    """``DELETE .../custom-domains/{domain}``: upper and lower case do not matter."""
    _, branch = access.branch(tx, call)
    domain = call.path["domain"]
    where = "branch_id = ? AND id = ?"
    name = domain.lower().removesuffix(".")
    if not tx.execute(f"DELETE FROM custom_domains WHERE {where}", branch.id, name):
        raise not_found("custom domain", domain)
    return Response(204)


def _insert(tx: Transaction, branch: Branch, name: str, body: CustomDomainRegister) -> CustomDomain:
    """Store a domain. This replaces its registration on a deleted branch, if there is one."""
    tx.execute("DELETE FROM custom_domains WHERE id = ?", name)
    domain = CustomDomain(
        id=name,
        branch_id=branch.id,
        entity_type=body.entity_type,
        entity_id=body.entity_id,
        created_at=tx.now,
    )
    return tx.insert(domain)


def _normalized(domain: str) -> str:
    """Return a domain in lower case, without a final dot. Raise 400 if it cannot be registered."""
    name = domain.lower().removesuffix(".")
    # Some letters outside of ASCII have a lower-case form in ASCII.
    if not domain.isascii() or not _DOMAIN.fullmatch(name):
        raise invalid(
            f"invalid request: domain: {domain!r} is invalid: expected a domain name such as "
            "'api.example.com'"
        )
    if _RESERVED.fullmatch(name):
        raise invalid(
            f"invalid request: domain: {domain!r} belongs to Neon or to a private network: use a "
            "domain of your own"
        )
    return name


def _record(tx: Transaction, project: Project, domain: CustomDomain) -> Json:
    is_active = tx.now >= domain.created_at + span(tx.rules.durations.default)
    return {
        "domain": domain.id,
        "entity_type": domain.entity_type,
        "entity_id": domain.entity_id,
        "cname_target": f"fn-custom-domains.{computes.unreachable_host(project.region_id)}",
        "status": "active" if is_active else "pending",
        "dns_status": "ok" if is_active else "pending",
        "binding_status": "present" if is_active else "pending",
        "status_reason": "",
    }
