"""The addresses of computes, from connection URIs and host names. Pure."""

from collections.abc import Mapping
from typing import Final, NamedTuple, Self

from neonctl_async.models.connection_uri import ConnectionUri

PORT: Final = 5432
"""The Postgres port, unless a URI gives another one."""
USER: Final = "neonctl-async"
"""The role in startup messages if none is known. It need not exist: servers request a password for
any name."""

_ENDPOINT_OPTIONS: Final = ("endpoint=", "project=")
_POOLER: Final = "-pooler"
_RESERVED: Final = ".invalid"
"""The top-level domain that never resolves (RFC 6761), used by emulated computes."""


class Address(NamedTuple):
    """The address of a compute, and the startup message for it."""

    host: str
    port: int
    parameters: Mapping[str, str]
    """The parameters of the startup message."""
    uses_tls: bool = True
    """True if connections try TLS."""
    needs_tls: bool = True
    """True if connections without TLS are not allowed."""

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def is_reserved(self) -> bool:
        """True if the host name never resolves, because the compute is emulated."""
        return f".{self.host}".lower().rstrip(".").endswith(_RESERVED)

    @property
    def endpoint_id(self) -> str | None:
        """The id of the compute that the options or the host name select, or None."""
        for option in self.parameters.get("options", "").split():
            for prefix in _ENDPOINT_OPTIONS:
                if option.startswith(prefix):
                    return option.removeprefix(prefix).removesuffix(_POOLER)
        first, dot, _ = self.host.partition(".")
        return first.removesuffix(_POOLER) if dot and first.startswith("ep-") else None

    def of_compute(self, endpoint_id: str) -> Self | None:
        """Return the address of another compute behind the same proxy.

        Returns None unless the options select the compute, because a host name belongs to one
        compute.
        """
        options = self.parameters.get("options", "").split()
        if not any(option.startswith(_ENDPOINT_OPTIONS) for option in options):
            return None
        others = [option for option in options if not option.startswith(_ENDPOINT_OPTIONS)]
        selected = " ".join((f"endpoint={endpoint_id}", *others))
        return self._replace(parameters={**self.parameters, "options": selected})


def address_of_uri(uri: ConnectionUri) -> Address:
    """Return the address in a connection URI, without the password.

    Raises ValueError, without showing the URI, for a URI that cannot be read.
    """
    options = uri.options
    mode = options.get("sslmode", "prefer")
    parameters = {"user": uri.role, "database": uri.database}
    if "options" in options:
        parameters["options"] = options["options"]
    return Address(
        uri.host,
        uri.port,
        parameters,
        uses_tls=mode != "disable",
        needs_tls=mode not in {"disable", "allow", "prefer"},
    )


def address_of_host(host: str) -> Address:
    """Return the address of a compute that has its own host name, as on Neon."""
    return Address(host, PORT, {"user": USER})


def names_compute(host: str, endpoint_id: str) -> bool:
    """Return whether a host name selects a compute, as all of Neon's host names do."""
    return host.partition(".")[0] == endpoint_id
