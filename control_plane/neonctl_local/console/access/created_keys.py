"""The API keys and invitation secrets that a session has just created.

A page shows each of them once.
"""

from typing import Final

import msgspec

MAXIMUM: Final = 10
"""The largest number of created keys that a session keeps. New keys replace the oldest."""


class CreatedKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key or a secret, with the contents of the page that shows it.

    ``access`` describes what the key can do. ``example`` is the path of a request that it can send.
    ``back`` is the path, below ``/console``, of the page to return to.
    """

    key_id: str
    name: str
    token: str
    access: str
    example: str
    back: str
    org_id: str = ""
    owner: str = ""
    """The name of the new user that the key belongs to. Empty for all other keys."""
    accepts: str = ""
    """The path, below ``/console``, of the page that accepts the invitation.

    Empty unless the token is the secret of an invitation.
    """

    def __repr__(self) -> str:
        """Return a string without the token."""
        return f"<CreatedKey {self.key_id}>"


class CreatedKeys:
    """The created keys of a session that no page has shown yet."""

    def __init__(self) -> None:
        self._keys: dict[str, CreatedKey] = {}

    def keep(self, created: CreatedKey) -> None:
        """Keep a key until it is shown."""
        while len(self._keys) >= MAXIMUM:
            del self._keys[next(iter(self._keys))]
        self._keys[created.key_id] = created

    def take(self, key_id: str) -> CreatedKey | None:
        """Return a key and forget it. Return None if it is no longer kept."""
        return self._keys.pop(key_id, None)

    def clear(self) -> None:
        """Forget all keys."""
        self._keys.clear()
