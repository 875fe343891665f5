"""A string that is hidden from output."""

import hmac
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Final, NoReturn, Self

from msgspec import UnsetType

from neonctl_async._internal import kind_of

HIDDEN: Final = "**********"
"""The text that replaces a secret in output."""


_OF_TEXT: Final = frozenset({*dir(str), "decode"})
"""The attributes of str and bytes. A driver that reads one of them takes the value for a string."""
_OF_SQLALCHEMY: Final = "_sqla_is_testing_if_this_is_a_mock_object"
"""The attribute that SQLAlchemy looks for in a value that is neither a string nor a URL."""


def missing(value: object, name: str, instead: str) -> Exception:
    """Return the error for an attribute that ``value`` lacks.

    If a driver takes the value for a string or a URL, the error says what to do ``instead``.
    """
    kind = type(value).__name__
    hint = ""
    if instead and name == _OF_SQLALCHEMY:  # a TypeError ends the search
        return TypeError(f"expected a string or a URL, got a {kind}: {instead}")
    if instead and name in _OF_TEXT:
        hint = f", because it is no string: {instead}"
    return AttributeError(f"{kind!r} object has no attribute {name!r}{hint}", name=name, obj=value)


class Secret:
    """An API key, a password or a connection URI.

    ``str()``, ``repr()`` and format strings hide the value. Only ``reveal()`` returns it. Pickling
    a secret, or encoding it with msgspec, raises TypeError.
    """

    __slots__ = ("_value",)
    _INSTEAD = "pass secret.reveal()"

    if not TYPE_CHECKING:  # a type checker reports this mistake itself

        def __getattr__(self, name: str) -> NoReturn:
            raise missing(self, name, self._INSTEAD)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the value."""
        return self._value

    def __str__(self) -> str:
        return HIDDEN

    def __repr__(self) -> str:
        return f"{type(self).__name__}('{HIDDEN}')"

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

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        name = type(self).__name__
        raise TypeError(f"a {name} cannot be pickled: to store the value, pickle reveal()")


class SentSecret(Secret):
    """A secret whose value is sent in the body of a request."""

    __slots__ = ()


def sent_secret(value: str | Secret | UnsetType) -> SentSecret | UnsetType:
    """Return a secret parameter as part of a body.

    Assign the result to the parameter itself, so that tracebacks do not show the value.
    """
    if not isinstance(value, str | Secret):
        return value  # UNSET, or a mistake that the check of the body reports
    return SentSecret(value.reveal() if isinstance(value, Secret) else value)


def decode_hook(expected: type, value: object) -> object:
    """Build a :class:`Secret` from a JSON string; the ``dec_hook`` of every decoder.

    A field whose type is a subclass gets an instance of that subclass. A field of type ``object``
    accepts any JSON value.
    """
    if issubclass(expected, Secret) and isinstance(value, str):
        return expected(value)
    if expected is object:
        return value
    raise TypeError(f"expected {expected.__name__}, got {type(value).__name__}")


def encode_hook(value: object) -> str:
    """Return the value of a :class:`SentSecret`; the ``enc_hook`` of every body.

    Raises TypeError for any other type that JSON lacks, including other secrets.
    """
    if isinstance(value, SentSecret):
        return value.reveal()
    kind, hint = kind_of(value), ""
    if isinstance(value, Secret):
        hint = ": pass secret.reveal() to send its value"
    elif isinstance(value, Coroutine):
        hint = ": await the call, and pass its result"
    raise TypeError(f"{kind} in a body cannot be written as JSON{hint}")
