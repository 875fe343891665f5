"""Request bodies about the services of a branch."""

from typing import Annotated, Literal

from msgspec import Meta

from neonctl_local.api.request.bodies import Body, Name

CredentialScope = Literal["storage:read", "storage:write", "ai_gateway:invoke", "functions:invoke"]


class CredentialCreate(Body, frozen=True):
    """A credential to create."""

    scopes: Annotated[list[CredentialScope], Meta(min_length=1, max_length=16)]
    principal_type: Literal["user"]
    name: Name | None = None


class CustomDomainRegister(Body, frozen=True):
    """A domain to register, and the function that it leads to."""

    domain: str
    entity_type: str
    entity_id: str
