"""Arguments for the methods of the API, built from the types of their parameters."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints
from zlib import crc32

from msgspec import Struct, UnsetType

from tests.support.methods import Method

TIMESTAMP = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

VALUES: Mapping[str, object] = {
    "frequency": "daily",
    "email": "someone@example.com",
    "jwks_url": "https://example.com/jwks.json",
    "timeout": 1000,
    "pg_version": 17,
    "member_id": "0d1a7ac7-0c1c-4a6f-8e33-0d5f0d7a2d11",
    "operation_id": "5b1f7f0e-52a4-4c3e-9d0c-7f3a0e7e6c22",
    "request_id": "9c2e7d6a-6c43-4c5b-8b3f-1f5d3e9a4b33",
    "retention_seconds": 86400,
    "scopes": "storage:read",
    "since": "30m",
    "source": "function",
    "role": "admin",
    "slug": "hello",
    "type": "read_write",
    "zip": b"PK",
    "audit_log_level": "full",
    "pooler_mode": "transaction",
    "auth_provider": "better_auth",
    "oauth_provider_id": "google",
    "auth.add_oauth_provider.id": "google",
    "auth.update_email_provider.type": "standard",
    "email_verification_method": "link",
    "sender_email": "someone@example.com",
    "recipient_email": "someone@example.com",
    "creator_role": "owner",
    "expires_in": 15,
    "otp_expires_in": 120,
    "enabled_events": "user.created",
    "timeout_seconds": 5,
    "auth.add_trusted_domain.domain": "https://example.com",
    "domains": "https://example.com",
}
"""Values of parameters that the API restricts beyond their type, by name.

A name such as ``auth.add_oauth_provider.id`` is the parameter of one method.
"""


def every_argument(method: Method) -> dict[str, object]:
    """Return a value for each parameter of a method."""
    hints = method.hints
    return {
        name: VALUES.get(f"{method}.{name}") or _value(name, hints[name])
        for name in method.parameters
    }


def _value(name: str, hint: Any) -> Any:
    """Return a value of a type. Strings and datetimes are derived from the parameter's name."""
    match get_origin(hint):
        case origin if origin in {Union, UnionType}:
            return _value(name, _first_value(get_args(hint)))
        case origin if origin is Literal:
            return get_args(hint)[0]
        case origin if isinstance(origin, type) and issubclass(origin, Mapping):
            return {"key": _value(name, get_args(hint)[1])}
        case origin if isinstance(origin, type) and issubclass(origin, Sequence):
            return [_value(name, get_args(hint)[0])]
        case _ if issubclass(hint, Struct):
            hints = get_type_hints(hint)
            return hint(**{field: _value(field, hints[field]) for field in hint.__struct_fields__})
        case _ if issubclass(hint, Enum):
            return next(iter(hint))
        case _:
            return VALUES.get(name) or _plain(name, hint)


def _plain(name: str, hint: type) -> object:
    if hint is datetime:
        return TIMESTAMP + timedelta(seconds=crc32(name.encode()) % 1_000_000)
    return {str: name.replace("_", "-"), bool: True, int: 7, float: 0.5}[hint]


def _first_value(hints: Iterable[Any]) -> Any:
    """Return the first type of a union that is neither UnsetType nor None."""
    return next(hint for hint in hints if hint not in {UnsetType, NoneType})


def choices(method: Method) -> dict[str, set[object]]:
    """Return the allowed values of each parameter whose type is a Literal."""
    hints = method.hints
    literals = {
        name: hint
        for name in method.parameters
        for hint in (hints[name], *get_args(hints[name]))
        if get_origin(hint) is Literal
    }
    return {name: set(get_args(literal)) for name, literal in literals.items()}


def may_be_null(method: Method) -> list[str]:
    """Return the names of the parameters that accept None."""
    hints = method.hints
    return [name for name in method.parameters if NoneType in get_args(hints[name])]
