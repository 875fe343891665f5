"""Settings, from arguments and the environment, as frozen Structs checked when they are made."""

import ipaddress
import math
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit

import msgspec

from neonctl_async.errors import ConfigurationError
from neonctl_async.hooks import Hooks
from neonctl_async.models.secret import Secret

DEFAULT_BASE_URL = "https://console.neon.tech/api/v2"
API_KEY_VARIABLE = "NEON_API_KEY"
BASE_URL_VARIABLE = "NEON_API_HOST"


class Timeout(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of one request, in seconds.

    ``connect`` is for making the connection, ``read`` for the time until the answer begins, and
    for how long no byte of it may come then, ``total`` for all of it. Connecting gets nine tenths
    of a shorter ``read`` or ``total``, so that a request that was never sent is known as such.
    """

    connect: float = 10.0
    read: float = 20.0
    total: float = 30.0

    def __post_init__(self) -> None:
        _check_types(self)
        _check_above_zero("Timeout", connect=self.connect, read=self.read, total=self.total)


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How often, and for how long, a request that failed in passing is sent again.

    ``attempts`` counts the first try. Before try n+1 passes a random time up to
    ``initial * 2**(n-1)`` seconds, at most ``maximum`` (exponential backoff, full jitter), and
    at least what ``Retry-After`` asks for. The whole call ends within ``deadline`` seconds after
    its first request was sent, whatever it is waiting for then.
    """

    attempts: int = 5
    initial: float = 0.25
    maximum: float = 10.0
    deadline: float = 60.0

    def __post_init__(self) -> None:
        _check_types(self)
        if self.attempts < 1:
            raise ConfigurationError(f"RetryPolicy.attempts is {self.attempts}: at least 1")
        _check_not_negative("RetryPolicy", initial=self.initial, maximum=self.maximum)
        _check_above_zero("RetryPolicy", deadline=self.deadline)

    @classmethod
    def never(cls) -> Self:
        """Every failure is final."""
        return cls(attempts=1)


class RateBudget(msgspec.Struct, frozen=True, kw_only=True):
    """The requests that may be sent within any 60 seconds and any one second.

    The defaults are the platform's documented limits: 700 a minute for an account, 40 a second
    for a route, 10 a second for creating organization keys. A route is a method and a path with
    ``{id}`` for each parameter. ``None`` is no limit.
    """

    per_minute: int | None = 700
    per_route_per_second: int | None = 40
    route_limits: Mapping[str, int] = msgspec.field(
        default_factory=lambda: {"POST /organizations/{id}/api_keys": 10}
    )

    def __post_init__(self) -> None:
        _check_types(self)
        limits = {
            "per_minute": self.per_minute,
            "per_route_per_second": self.per_route_per_second,
            **{f"route_limits[{route!r}]": limit for route, limit in self.route_limits.items()},
        }
        for name, limit in limits.items():
            if limit is not None and limit < 1:
                raise ConfigurationError(
                    f"RateBudget.{name} is {limit}: at least 1, or None for no limit"
                )

    @classmethod
    def unlimited(cls) -> Self:
        """No limit at all."""
        return cls(per_minute=None, per_route_per_second=None, route_limits={})

    def split(self, parts: int) -> Self:
        """What each of ``parts`` clients may send that share one account: in processes, or hosts.

        At least 1 request in every window, which with more clients than that is too much.
        """
        if parts < 1:
            raise ConfigurationError(f"RateBudget.split into {parts} parts: at least 1")

        def share(limit: int | None) -> int | None:
            return None if limit is None else max(limit // parts, 1)

        return type(self)(
            per_minute=share(self.per_minute),
            per_route_per_second=share(self.per_route_per_second),
            route_limits={
                route: max(limit // parts, 1) for route, limit in self.route_limits.items()
            },
        )

    def limit_of(self, route: str) -> int | None:
        """The requests a second that ``route`` may take."""
        return self.route_limits.get(route, self.per_route_per_second)


class PollPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """When a pending operation is looked at again, in seconds.

    The first look comes after ``initial``; each further delay is ``growth`` times the one before,
    at most ``maximum``, which by default is the interval that the specification suggests
    (section 8). ``jitter`` is the share by which a delay varies at random, in both directions.
    """

    initial: float = 0.25
    growth: float = 1.5
    maximum: float = 5.0
    jitter: float = 0.1

    def __post_init__(self) -> None:
        _check_types(self)
        _check_above_zero("PollPolicy", initial=self.initial, maximum=self.maximum)
        if not (math.isfinite(self.growth) and self.growth >= 1):
            raise ConfigurationError(f"PollPolicy.growth is {self.growth}: at least 1")
        if not 0 <= self.jitter < 1:
            raise ConfigurationError(f"PollPolicy.jitter is {self.jitter}: from 0 to below 1")

    @classmethod
    def constant(cls, interval: float) -> Self:
        """A look every ``interval`` seconds, without jitter."""
        return cls(initial=interval, growth=1.0, maximum=interval, jitter=0.0)


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """All that a client is made of. ``base_url`` has no trailing slash."""

    api_key: Secret
    base_url: str
    timeout: Timeout
    retry: RetryPolicy
    budget: RateBudget
    polling: PollPolicy
    hooks: tuple[Hooks, ...]
    max_connections: int
    max_response_bytes: int
    ca_file: str | None
    trust_env: bool

    def __post_init__(self) -> None:
        _check_types(self)
        for name in ("max_connections", "max_response_bytes"):
            if (value := getattr(self, name)) < 1:
                raise ConfigurationError(f"{name} is {value}: at least 1")


def find_api_key(given: Secret | None, from_environment: Secret) -> Secret:
    """The key given, else that of ``NEON_API_KEY``.

    Raises ConfigurationError if there is none, or if it could not stand in a header (RFC 9110,
    section 5.5).
    """
    found = from_environment if given is None else given
    _check_text("api_key", found)
    key = Secret(found.reveal().strip())
    if not key:
        raise ConfigurationError(
            f"no API key: set the environment variable {API_KEY_VARIABLE} or pass api_key="
        )
    if not re.fullmatch(r"[!-~]+", key.reveal()):
        raise ConfigurationError(
            "the API key holds a space, a line break or another character that no key has: "
            "was it copied whole, and alone?"
        )
    return key


def find_base_url(given: Secret | None, from_environment: Secret) -> str:
    """The base URL given, else that of ``NEON_API_HOST``, else the platform's.

    It comes wrapped, since people put keys and passwords into it. Raises ConfigurationError
    unless it is https, or http to a loopback address.
    """
    source = BASE_URL_VARIABLE if given is None else "base_url"
    found = (from_environment or Secret(DEFAULT_BASE_URL)) if given is None else given
    _check_text("base_url", found)
    problem = _problem_of_url(found.reveal().strip())
    if problem is not None:
        raise ConfigurationError(f"{source} {problem}")
    return found.reveal().strip().rstrip("/")


def _problem_of_url(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        host.encode("idna")
    except ValueError:
        return f"is not a URL, as {DEFAULT_BASE_URL} is"
    if "@" in parts.netloc:
        return "must not hold a user name or password"
    if parts.scheme not in {"http", "https"} or not host or port == 0:
        # What does not even look like a host may be the key, put in the wrong place.
        shown = repr(url) if "." in url or ":" in url else "no URL"
        return (
            f"is {shown}: it needs a scheme, a host and the version segment, "
            f"as in {DEFAULT_BASE_URL}"
        )
    if not re.fullmatch(r"[!-~]+", url) or set(url) & set("?#\\"):
        return f"must be ASCII without spaces, \\, query or fragment, as {DEFAULT_BASE_URL} is"
    if parts.scheme == "http" and not _is_loopback(host):
        return (
            f"is {url!r}: plain http would show the key to the network; use https "
            "(http is taken for loopback addresses only)"
        )
    return None


def find_hooks(given: Iterable[Hooks]) -> tuple[Hooks, ...]:
    """The hooks given. Raises ConfigurationError for anything but some Hooks."""
    with suppress(TypeError):  # of what cannot be iterated over
        hooks = tuple(given)
        if {type(one) for one in hooks} <= {Hooks}:
            return hooks
    raise ConfigurationError(
        f"hooks is {given!r}: expected a sequence of Hooks, as in hooks=[Hooks(on_status=…)]"
    )


def wrap(value: str | Secret | None) -> Secret | None:
    """An argument that is, or may hold, a secret, so that no frame shows it from then on."""
    return value if value is None or isinstance(value, Secret) else Secret(value)


def _check_text(name: str, value: Secret) -> None:
    kind = type(value.reveal())
    if kind is not str:
        raise ConfigurationError(f"{name} is of type {kind.__name__}: expected a string")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check_types(settings: msgspec.Struct) -> None:
    """Raise ConfigurationError for a setting that is not of the type its field declares."""
    owner = "" if isinstance(settings, Config) else f"{type(settings).__name__}."
    for field in msgspec.structs.fields(settings):
        value = getattr(settings, field.name)
        try:
            msgspec.convert(value, field.type)
        except msgspec.ValidationError as error:
            expected = getattr(field.type, "__name__", field.type)
            raise ConfigurationError(
                f"{owner}{field.name} is {value!r}: expected {expected}"
            ) from error


def _check_above_zero(owner: str, **values: float) -> None:
    for name, value in values.items():
        if not (math.isfinite(value) and value > 0):
            raise ConfigurationError(f"{owner}.{name} is {value}: a number of seconds above 0")


def _check_not_negative(owner: str, **values: float) -> None:
    for name, value in values.items():
        if not (math.isfinite(value) and value >= 0):
            raise ConfigurationError(f"{owner}.{name} is {value}: a number of seconds, 0 or more")
