"""The settings of a local control plane: durations, background intervals, locks and limits."""

import math
import re
from pathlib import Path
from typing import Final, Literal

import msgspec

ACTIONS: Final = frozenset(
    {
        "apply_config",
        "apply_storage_config",
        "check_availability",
        "create_branch",
        "create_timeline",
        "delete_tenant",
        "delete_timeline",
        "start_compute",
        "suspend_compute",
        "sync_dbs_and_roles_from_compute",
        "tenant_attach",
        "tenant_detach",
        "tenant_reattach",
        "timeline_archive",
        "timeline_unarchive",
    }
)
"""The actions that an operation can have."""


def check_action(action: str) -> None:
    """Raise ValueError if the action is unknown."""
    if action not in ACTIONS:
        known = ", ".join(sorted(ACTIONS))
        raise ValueError(f"there is no action {action!r}: expected one of {known}")


_LABEL: Final = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_DOMAIN: Final = re.compile(rf"(?=.{{1,200}}\Z){_LABEL}(?:\.{_LABEL})+")

Lock = Literal["none", "branch", "project"]
"""What a running operation locks: nothing, its branch, or its project.

Another request that would start an operation there gets a 423. Neon does not publish which
operations conflict, so by default all operations of a project do.
"""


class Durations(msgspec.Struct, frozen=True, kw_only=True):
    """The durations of operations, in seconds.

    ``default`` applies to every action that ``by_action`` does not name. ``scheduling`` is the
    share of its duration that the first operation of a request spends in status ``scheduling``. It
    is 0 by default, because in a response recorded from Neon, the first operation was running.
    """

    default: float = 1.0
    by_action: dict[str, float] = {}
    scheduling: float = 0.0

    def __post_init__(self) -> None:
        seconds = (self.default, *self.by_action.values())
        for duration in seconds:
            if not (math.isfinite(duration) and duration >= 0):
                raise ValueError(
                    f"a duration is {duration}: expected a finite number of seconds, 0 or more"
                )
        if not 0 <= self.scheduling <= 1:
            raise ValueError(f"scheduling is {self.scheduling}: expected a share from 0 to 1")
        for action in self.by_action:
            check_action(action)

    def of(self, action: str) -> float:
        """Return the duration of an action, in seconds."""
        return self.by_action.get(action, self.default)


class BackgroundIntervals(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The intervals of background work, in seconds; ``None`` means never.

    - ``suspend_after``: the idle time after which a compute is suspended. It applies to computes
      whose own ``suspend_timeout_seconds`` is 0.
    - ``check_availability_every``: the time between two availability checks of a branch with a
      compute.
    - ``detach_after``: the time without requests after which a project is detached from storage.
    - ``archive_after_age``, ``archive_after_idle``: the age and the idle time that a branch must
      both have reached before it is archived.
    """

    suspend_after: float | None = 300.0
    check_availability_every: float | None = 4 * 3600.0
    detach_after: float | None = 7 * 86400.0
    archive_after_age: float | None = 14 * 86400.0
    archive_after_idle: float = 86400.0

    def __post_init__(self) -> None:
        every = self.check_availability_every
        if every is not None and every < 0.001:
            raise ValueError(
                f"check_availability_every is {every}: expected None or at least 0.001"
            )
        optional = (self.suspend_after, self.detach_after, self.archive_after_age)
        shortest = min(self.archive_after_idle, *(interval or 0 for interval in optional))
        if shortest < 0:
            raise ValueError(f"an interval is {shortest}: expected 0 or more seconds")


class RateLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Rate limits for requests, in sliding windows of 60 seconds and of one second.

    ``retry_after`` is the format of the ``Retry-After`` header of a 429: seconds, an HTTP date, or
    no header.
    """

    account_per_minute: int = 700
    route_per_second: int = 40
    organization_keys_per_second: int = 10
    retry_after: Literal["seconds", "date", "none"] = "seconds"

    def __post_init__(self) -> None:
        limits = (self.account_per_minute, self.route_per_second, self.organization_keys_per_second)
        if min(limits) < 1:
            raise ValueError(f"a rate limit is {min(limits)}: expected at least 1 request")


MINIMUM_MEMORY: Final = 4 << 20
"""The smallest possible memory limit, in bytes. One API request needs up to 2 MiB."""


class ConnectionLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The limits for connections to the server. The times are in seconds.

    - ``maximum``: the maximum number of connections. When it is reached, a new connection replaces
      the one that has been idle longest. If none is idle, a request on the new connection gets
      a 503.
    - ``idle``: the time after which a connection without a request is closed.
    - ``head``: the time limit for receiving the request line and the headers, from their first
      byte. A slower request gets a 408.
    - ``body``: the time limit for receiving the body of a request, from the end of the headers. A
      slower request gets a 408.
    - ``send``: how long a client may leave a response unread.
    - ``memory``: the maximum number of bytes for the bodies of all requests and the results of SQL
      over HTTP and WebSocket together. A request that would need more gets a 503 or 507. The
      default is 512 MiB, which is enough for seven of the largest results at once: each takes 64
      MiB and some overhead.
    """

    maximum: int = 2000
    idle: float = 75.0
    head: float = 10.0
    body: float = 30.0
    send: float = 60.0
    memory: int = 512 << 20

    def __post_init__(self) -> None:
        if self.memory < MINIMUM_MEMORY:
            raise ValueError(f"memory is {self.memory}: expected at least {MINIMUM_MEMORY} bytes")
        if self.maximum < 1:
            raise ValueError(f"maximum is {self.maximum}: expected at least 1 connection")
        for name in ("idle", "head", "body", "send"):
            seconds = getattr(self, name)
            if not 0 < seconds < math.inf:
                raise ValueError(f"{name} is {seconds}: expected seconds, more than 0")


class PostgresSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the real databases of a local control plane.

    - ``binaries``: the directory with the programs of one Postgres version. By default, the
      versions on the machine and from the ``[postgres]`` extra are used.
    - ``port``: the port of the proxy that clients connect to; 0 means any free port.
    - ``tls``: the proxy requires TLS, with a certificate from a private authority.
    - ``domain``: the domain of the host names of computes, such as ``db.localhost``. Connection
      URIs then contain these names, as on Neon. All names in the domain must resolve to this
      machine, which is checked at startup. Requires TLS. Programs that build URIs from a host
      expect port 5432.
    - ``pooler``: connections to hosts with ``-pooler`` use a connection pooler in transaction mode,
      as on Neon. Without it, they are direct connections.
    - ``durable``: the servers write to disk before they confirm a commit. Without it, a crash of
      the operating system can lose data; killing the process cannot. The control
      plane's ``durable`` option sets it too.
    """

    binaries: Path | None = None
    port: int = 0
    tls: bool = False
    domain: str | None = None
    pooler: bool = True
    durable: bool = False

    def __post_init__(self) -> None:
        if self.domain is not None and not _DOMAIN.fullmatch(self.domain):
            raise ValueError(
                f"domain is {self.domain!r}: expected at least two labels of lower-case letters, "
                "digits and hyphens, such as 'db.localhost'; certificates cannot cover all names "
                "below a single label"
            )

    @property
    def requires_tls(self) -> bool:
        """True if clients must use TLS."""
        return self.tls or self.domain is not None


class PostgresRules(msgspec.Struct, frozen=True, kw_only=True):
    """What the engine and the API know about the real databases.

    ``versions`` contains the major versions, newest first. ``host`` and ``port`` are those of the
    proxy. ``ca_file`` is the certificate to verify the proxy with, if it uses TLS. ``domain`` is
    the domain of the computes, if their hosts can be reached. With ``history``, branches and
    restores can start at any point in time. ``libraries`` contains the libraries that each version
    can preload.
    """

    versions: tuple[int, ...]
    host: str
    port: int
    ca_file: str | None = None
    domain: str | None = None
    history: bool = False
    libraries: dict[int, frozenset[str]] = {}


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that storage, engine and API read.

    ``postgres`` is None without real databases.
    """

    durations: Durations = Durations()
    intervals: BackgroundIntervals = BackgroundIntervals()
    lock: Lock = "project"
    require_org_id: bool = False
    postgres: PostgresRules | None = None
