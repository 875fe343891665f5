"""Checks the startup parameters of a pooled connection, as PgBouncer does. Pure: no I/O."""

from collections.abc import Iterator, Mapping
from typing import Final

from neonctl_local.postgres.proxy.errors import ComputeRefusedError
from neonctl_local.postgres.proxy.routing import client_options
from neonctl_local.postgres.proxy.startup import StartupMessage

TRACKED: Final = {
    name.lower(): name
    for name in (
        b"application_name",
        b"client_encoding",
        b"DateStyle",
        b"IntervalStyle",
        b"standard_conforming_strings",
        b"TimeZone",
    )
}
"""The settings that follow a client from one server connection to the next."""

_IGNORED: Final = frozenset({b"extra_float_digits"})
"""Neon's ``ignore_startup_parameters``."""
_CODE: Final = "08P01"
_UNSUPPORTED_ADVICE: Final = (
    "Please use unpooled connection or remove this parameter from the startup package. More"
    " details: https://neon.tech/docs/connect/connection-errors#unsupported-startup-parameter"
)
"""What Neon's proxy adds to PgBouncer's error message."""


def find_settings(startup: StartupMessage) -> dict[bytes, bytes]:
    """Return the tracked settings of a client. Raise ComputeRefusedError for any other setting."""
    settings: dict[bytes, bytes] = {}
    for name, value in startup.parameters.items():
        if name == b"options":
            for key, part in _options(client_options(startup)):
                _add(settings, key, part, " in options")
        elif name not in (b"database", b"user") and not name.startswith(b"_pq_."):
            _add(settings, name, value, "")
    return settings


def unsupported_extensions(parameters: Mapping[bytes, bytes]) -> list[bytes]:
    """Return the protocol extensions that a client requests."""
    return [name for name in parameters if name.startswith(b"_pq_.")]


def _add(settings: dict[bytes, bytes], name: bytes, value: bytes, where: str) -> None:
    if tracked := TRACKED.get(name.lower()):
        settings[tracked] = value
    elif name not in _IGNORED:
        shown = name.decode(errors="replace")
        raise ComputeRefusedError(
            f"unsupported startup parameter{where}: {shown}. {_UNSUPPORTED_ADVICE}", _CODE
        )


def _options(words: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Yield the settings of options like ``-c name=value`` and ``--name=value``."""
    rest = iter(words)
    for word in rest:
        if word.startswith((b"-c", b"--")):
            name, equals, value = (word[2:] or next(rest, b"")).partition(b"=")
            if equals:
                yield name, value.replace(b"\\", b"")
                continue
        raise ComputeRefusedError(
            "unsupported options startup parameter: only '-c config=val' and '--config=val' are"
            " allowed",
            _CODE,
        )
