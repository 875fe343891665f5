"""An API key that was just created. A page shows it once (section 2.1)."""

import msgspec


class CreatedKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key, and what the page that shows it says about it.

    ``access`` says what the key can do. ``example`` is the path of a request that it can send.
    ``back`` is the path of the list of its owner's keys, below ``/console``.
    """

    key_id: str
    name: str
    token: str
    access: str
    example: str
    back: str
    org_id: str = ""
    owner: str = ""
    """The name of the new user that the key belongs to, or empty."""

    def __repr__(self) -> str:
        """Return a text without the token."""
        return f"<CreatedKey {self.key_id}>"
