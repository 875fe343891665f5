"""Requests that manage the domains to which Neon Auth on a branch may redirect users."""

import msgspec

from neonctl_local.api.request.bodies import Body
from neonctl_local.api.request.calls import Call, Response, json_text, raw_json, respond
from neonctl_local.api.services import auth
from neonctl_local.errors import conflict
from neonctl_local.storage.service_tables import AuthIntegration
from neonctl_local.storage.transactions import Transaction


class Domain(Body, frozen=True):
    """A trusted domain of an authentication provider."""

    domain: str
    auth_provider: str


class DomainName(Body, frozen=True):
    """A trusted domain to delete."""

    domain: str


class DomainsDelete(Body, frozen=True):
    """Trusted domains to delete, all of one authentication provider."""

    auth_provider: str
    domains: list[DomainName]


def list_branch(tx: Transaction, call: Call) -> Response:
    """``GET .../auth/domains``: oldest first."""
    return respond({"domains": raw_json(auth.enabled(tx, call).domains)})


def add(tx: Transaction, call: Call) -> Response:
    """``POST .../auth/domains``: return 409 if the domain is trusted already."""
    integration = auth.changeable(tx, call)
    added = call.body(Domain)
    domains = _domains(integration)
    if added in domains:
        raise conflict(f"the domain {added.domain!r} is already trusted")
    tx.update(integration, domains=json_text([*domains, added]))
    return Response(201)


def delete(tx: Transaction, call: Call) -> Response:
    """``DELETE .../auth/domains``: ignore domains that are not trusted."""
    integration = auth.changeable(tx, call)
    body = call.body(DomainsDelete)
    deleted = {item.domain for item in body.domains}
    kept = [
        trusted
        for trusted in _domains(integration)
        if trusted.auth_provider != body.auth_provider or trusted.domain not in deleted
    ]
    tx.update(integration, domains=json_text(kept))
    return Response(200)


def _domains(integration: AuthIntegration) -> list[Domain]:
    return msgspec.json.decode(integration.domains, type=list[Domain])
