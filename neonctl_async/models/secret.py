"""A string that does not show itself."""

import hmac
from typing import Final, NoReturn, final

HIDDEN: Final = "**********"
"""What is shown in the place of a secret."""


@final
class Secret:
    """A key or password as the API returned it.

    ``str()``, ``repr()`` and format strings hide it, ``reveal()`` gives it. It is neither pickled
    nor encoded by msgspec: revealing a secret takes a call that says so.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The secret itself."""
        return self._value

    def __str__(self) -> str:
        return HIDDEN

    def __repr__(self) -> str:
        return f"Secret('{HIDDEN}')"

    def __format__(self, spec: str) -> str:
        return format(HIDDEN, spec)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._bytes(), other._bytes())

    def _bytes(self) -> bytes:
        return self._value.encode(errors="surrogatepass")

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __bool__(self) -> bool:
        return bool(self._value)

    def __copy__(self) -> "Secret":
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> "Secret":
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret is not pickled: pass on secret.reveal() if that is what you want")


def decode_hook(expected: type, value: object) -> object:
    """The ``dec_hook`` of every decoder: builds a :class:`Secret` from a JSON string.

    What is declared an ``object`` may be any JSON.
    """
    if expected is Secret and isinstance(value, str):
        return Secret(value)
    if expected is object:
        return value
    raise TypeError(f"expected {expected.__name__}, got {type(value).__name__}")
