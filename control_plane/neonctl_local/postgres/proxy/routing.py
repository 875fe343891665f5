"""Finds the compute that a client requests. Pure: names and options in, the endpoint id out.

The rules and the messages are Neon's.
"""

import re
from collections.abc import Collection
from typing import Final, NamedTuple

from neonctl_local.postgres.proxy.errors import ComputeRefusedError
from neonctl_local.postgres.proxy.startup import StartupMessage

MISSING_ENDPOINT: Final = (
    "Endpoint ID is not specified. Either please upgrade the postgres client library (libpq) for"
    " SNI support or pass the endpoint ID (first part of the domain name) as a parameter:"
    " '?options=endpoint%3D<endpoint-id>'. See more at https://neon.tech/sni"
)

_OPTIONS: Final = b"options"
_READ_ONLY: Final = b"-c default_transaction_read_only=on"
_OPTION: Final = re.compile(rb"(?:\\.|[^\\\s])+\\?|\\$", re.DOTALL)
_ENDPOINT_OPTION: Final = re.compile(rb"(?:endpoint|project)=(.*)", re.DOTALL)
_NEON_OPTION: Final = re.compile(rb"neon_(\w+):(.+)", re.DOTALL)
_MOMENTS: Final = (b"timestamp", b"lsn")
_IDS: Final = ("ep-", "br-")
_SERVERLESS: Final = "api"
"""The first label of the host name that the serverless driver sends SQL to."""


class Compute(NamedTuple):
    """The compute that a client names. ``pooled`` is true for the host of its pooler.

    If the client requests past data, ``endpoint_id`` ends in the point in time: ``br-1 lsn:0/1``.
    The id can then be that of a branch.
    """

    endpoint_id: str
    pooled: bool


class PasswordWithEndpoint(NamedTuple):
    """A password that starts with the id of an endpoint."""

    compute: Compute
    password: bytes

    def __repr__(self) -> str:
        return f"<PasswordWithEndpoint {self.compute.endpoint_id}>"


def find_endpoint(
    startup: StartupMessage, server_name: str | None, domains: Collection[str] = ()
) -> Compute | None:
    """Return the compute that the options or the TLS server name give, or None if neither does.

    All hosts in ``domains`` are computes. Raise ComputeRefusedError if the options and the server
    name give different endpoints, if the id is malformed, or if the client names no user.
    """
    if not startup.parameters.get(b"user"):
        raise ComputeRefusedError("Parameter 'user' is missing in startup packet.", "28000")
    option = _option_endpoint(startup)
    domain = _domain_endpoint(server_name, domains)
    if option is not None and domain is not None and option != domain:
        raise ComputeRefusedError(
            f"Inconsistent project name inferred from SNI ('{domain}')"
            f" and project option ('{option}')."
        )
    found = option if option is not None else domain
    return None if found is None else find_compute(found, startup)


def find_compute(endpoint_id: str, startup: StartupMessage) -> Compute:
    """Return the compute with an id, which may end in ``-pooler``.

    Requests for past data do not use the pooler. Raise ComputeRefusedError if the id is malformed.
    """
    if not endpoint_id.replace("-", "a").isalnum():
        raise ComputeRefusedError(
            f"Project name ('{endpoint_id}') must contain only alphanumeric characters and hyphen."
        )
    own, pooled = endpoint_id.removesuffix("-pooler"), endpoint_id.endswith("-pooler")
    moments = [
        word.removeprefix(b"neon_").decode(errors="replace")
        for word in _split(startup)
        if (match := _NEON_OPTION.fullmatch(word)) and match[1] in _MOMENTS
    ]
    return Compute(" ".join((own, *moments)), pooled and not moments)


def parse_password(password: bytes, startup: StartupMessage) -> PasswordWithEndpoint:
    """Split a password like ``endpoint=<id>;<password>`` or ``endpoint=<id>$<password>``."""
    separator = b";" if b";" in password else b"$"
    option, found, rest = password.partition(separator)
    match = _ENDPOINT_OPTION.fullmatch(option)
    if match is None or not found:
        raise ComputeRefusedError(MISSING_ENDPOINT)
    return PasswordWithEndpoint(find_compute(match[1].decode(errors="replace"), startup), rest)


def server_startup(startup: StartupMessage, *, read_only: bool) -> StartupMessage:
    """Return the startup message for the server, without Neon's own options.

    Transactions on a read-only compute are read-only by default.
    """
    options = client_options(startup)
    if read_only:
        options.append(_READ_ONLY)
    parameters = {name: value for name, value in startup.parameters.items() if name != _OPTIONS}
    if options:
        parameters[_OPTIONS] = b" ".join(options)
    return startup._replace(parameters=parameters)


def client_options(startup: StartupMessage) -> list[bytes]:
    """Return the words of the options, without Neon's own, such as the endpoint."""
    return [
        word
        for word in _split(startup)
        if not (_ENDPOINT_OPTION.fullmatch(word) or _NEON_OPTION.fullmatch(word))
    ]


def _split(startup: StartupMessage) -> list[bytes]:
    """Split the options as Postgres does: at spaces without a backslash before them."""
    return _OPTION.findall(startup.parameters.get(_OPTIONS, b""))


def _option_endpoint(startup: StartupMessage) -> str | None:
    """Return the endpoint that the options name. Neon ignores options that name two endpoints."""
    matches = [match for word in _split(startup) if (match := _ENDPOINT_OPTION.fullmatch(word))]
    return matches[0][1].decode(errors="replace") if len(matches) == 1 else None


def _domain_endpoint(server_name: str | None, domains: Collection[str]) -> str | None:
    """Return the first part of a host name like ``ep-late-frost-12345678.neon.invalid``, or None.

    Clients also send other names for this machine, like ``localhost``.
    """
    first, dot, domain = (server_name or "").lower().partition(".")
    is_compute = first.startswith(_IDS) or (domain in domains and first != _SERVERLESS)
    return first if dot and is_compute else None
