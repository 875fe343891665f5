"""The results of the control server, in a module that tests import without the server."""

import msgspec

from neonctl_local import Fault


class ActiveFault(msgspec.Struct, frozen=True):
    """An active fault. ``fired`` is the number of requests that it has changed."""

    fault: Fault
    fired: int


class TenantAdded(msgspec.Struct, frozen=True):
    """A new tenant: its number in the process, its first key, user and organization."""

    number: int
    api_key: str
    user_id: str
    org_id: str

    def __repr__(self) -> str:
        return f"<TenantAdded {self.number}>"
