"""Calls to a tenant's methods from another process, with arguments and results as JSON."""

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, get_type_hints

import msgspec

from neonctl_local import InjectedFault, Tenant
from pytest_neonctl_async.tenant_records import ActiveFault


class TenantCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The name of a method or property of :class:`Tenant`, and the arguments by name."""

    name: str
    arguments: msgspec.Raw

    async def run(self, tenant: Tenant) -> object:
        """Call the method, or read the property.

        Raise ValueError for a name that is not in ``ALLOWED``, or for arguments that do not match
        the signature.
        """
        arguments_type = ALLOWED.get(self.name)
        if arguments_type is None:
            raise ValueError(f"no method {self.name!r}: expected one of {', '.join(ALLOWED)}")
        arguments = msgspec.json.decode(self.arguments, type=arguments_type)
        result: object = getattr(tenant, self.name)
        if callable(result):
            result = result(**msgspec.structs.asdict(arguments))
        return await result if inspect.isawaitable(result) else result


def encode_result(result: object) -> bytes:
    """Encode the result of a call to JSON."""
    return msgspec.json.encode(result, enc_hook=_encode_fault)


def _encode_fault(value: object) -> ActiveFault:
    if isinstance(value, InjectedFault):
        return ActiveFault(value.fault, value.fired)
    raise TypeError(f"cannot encode a value of type {type(value).__name__} as JSON")


def _arguments_type(function: Callable[..., object]) -> type[msgspec.Struct]:
    hints = get_type_hints(function)
    _, *parameters = inspect.signature(function).parameters.values()  # the first one is self
    return msgspec.defstruct(
        function.__name__,
        [
            (parameter.name, hints[parameter.name])
            if parameter.default is parameter.empty
            else (parameter.name, hints[parameter.name], parameter.default)
            for parameter in parameters
        ],
        kw_only=True,
        forbid_unknown_fields=True,
    )


def _allowed() -> Mapping[str, type[msgspec.Struct]]:
    members = {
        name: member.fget if isinstance(member, property) else member
        for name, member in vars(Tenant).items()
        # sign_in() is part of adding a tenant, and returns the tenant itself.
        if not name.startswith("_") and name != "sign_in"
    }
    return MappingProxyType(
        {name: _arguments_type(member) for name, member in members.items() if callable(member)}
    )


ALLOWED: Final = _allowed()
"""The arguments of every method and property that can be called, derived from :class:`Tenant`."""
