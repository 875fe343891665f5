"""Requests that manage a branch's OAuth providers of Neon Auth. No client secret is stored."""

from typing import Final, Literal

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from neonctl_local.api.request.bodies import Body
from neonctl_local.api.request.calls import Call, Response, json_text, respond
from neonctl_local.api.services import auth
from neonctl_local.errors import ApiError, conflict, not_found
from neonctl_local.storage.service_tables import AuthIntegration
from neonctl_local.storage.transactions import Transaction

SHARED: Final = ("google", "github")
"""The providers for which Neon offers an OAuth application that all its users share."""


class OauthProvider(Body, frozen=True):
    """A provider with its own OAuth application, or with the application that Neon shares."""

    id: str
    type: Literal["standard", "shared"]
    client_id: str | UnsetType = UNSET


class OauthProviderAdd(Body, frozen=True):
    """An OAuth provider to add."""

    id: str
    client_id: str = ""
    client_secret: str = ""


class OauthProviderChanges(Body, frozen=True):
    """Changes to an OAuth provider. A client secret is accepted but not stored."""

    client_id: str = ""


def list_branch(tx: Transaction, call: Call) -> Response:
    """``GET .../auth/oauth_providers``: oldest first."""
    return respond({"providers": of(auth.enabled(tx, call))})


def add(tx: Transaction, call: Call) -> Response:
    """``POST .../auth/oauth_providers``: add a provider. Raise 409 if the branch already has it."""
    integration = auth.changeable(tx, call)
    body = call.body(OauthProviderAdd)
    providers = of(integration)
    if any(provider.id == body.id for provider in providers):
        raise conflict(f"the OAuth provider {body.id!r} is already added: change it with a PATCH")
    if body.client_id and body.client_secret:
        added = OauthProvider(id=body.id, type="standard", client_id=body.client_id)
    elif body.id in SHARED:
        added = OauthProvider(id=body.id, type="shared")
    else:
        raise ApiError(
            400,
            f"the OAuth provider {body.id!r} has no shared application: send the client_id and "
            "the client_secret of your own",
            code="INVALID_SHARED_OAUTH_PROVIDER",
        )
    _store(tx, integration, [*providers, added])
    return respond(added)


def update(tx: Transaction, call: Call) -> Response:
    """``PATCH .../auth/oauth_providers/{oauth_provider_id}``: use another OAuth application."""
    integration = auth.changeable(tx, call)
    provider = _find(integration, call)
    client_id = call.body(OauthProviderChanges).client_id
    if client_id:
        changed = replace(provider, type="standard", client_id=client_id)
        kept = [changed if other == provider else other for other in of(integration)]
        _store(tx, integration, kept)
        provider = changed
    return respond(provider)


def delete(tx: Transaction, call: Call) -> Response:
    """``DELETE .../auth/oauth_providers/{oauth_provider_id}``."""
    integration = auth.changeable(tx, call)
    provider = _find(integration, call)
    _store(tx, integration, [other for other in of(integration) if other != provider])
    return Response(200)


def of(integration: AuthIntegration) -> list[OauthProvider]:
    """Return the OAuth providers of a branch, oldest first."""
    return msgspec.json.decode(integration.oauth_providers, type=list[OauthProvider])


def _find(integration: AuthIntegration, call: Call) -> OauthProvider:
    provider_id = call.path["oauth_provider_id"]
    for provider in of(integration):
        if provider.id == provider_id:
            return provider
    raise not_found("OAuth provider", provider_id)


def _store(tx: Transaction, integration: AuthIntegration, providers: list[OauthProvider]) -> None:
    tx.update(integration, oauth_providers=json_text(providers))
