"""Settings as frozen Structs, validated when they are created."""

import hashlib
import hmac
import importlib.util
import ipaddress
import logging
import math
import os
import re
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from pathlib import Path
from types import NoneType
from typing import Final, Self, TypeAlias, cast
from urllib.parse import urlsplit

import msgspec

from neonctl_async._internal import shorten
from neonctl_async.errors import ConfigurationError
from neonctl_async.hooks import Hooks
from neonctl_async.models.secret import Secret

DEFAULT_BASE_URL = "https://console.neon.tech/api/v2"
API_KEY_VARIABLE = "NEON_API_KEY"
BASE_URL_VARIABLE = "NEON_API_HOST"
ALLOW_HTTP_VARIABLE = "NEON_ALLOW_HTTP"
BUDGET_VARIABLE = "NEON_RATE_BUDGET"
EXPECTED_STORE_URLS = (
    "sqlite:///path/to/file.db, redis://host:port/db, rediss://host:port/db or unix:///socket"
)
REDIS_SCHEMES = ("redis", "rediss", "unix")

_logger = logging.getLogger(__name__)


class Timeout(msgspec.Struct, frozen=True, kw_only=True):
    """Time limits of one request, in seconds.

    ``connect`` limits only the time to connect. ``read`` limits the time until the response starts,
    and the gap between two reads. ``total`` limits the request and its response. Since ``read`` and
    ``total`` start before connecting, all three limit it; if one of them expires before a
    connection is established, the request is reported as not sent.
    """

    connect: float = 10.0
    read: float = 20.0
    total: float = 30.0

    def __post_init__(self) -> None:
        _check_types(self)
        _check_above_zero("Timeout", connect=self.connect, read=self.read, total=self.total)


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on the retries of a call after transient failures. Times are in seconds.

    ``deadline`` limits the whole call, from its first request on. By default, it is longer than the
    minute in which Neon counts requests. ``attempts`` includes the first attempt, and counts only
    requests that may have been executed. After a 423, 429 or 503, or while a server that has
    responded before cannot be reached, only the deadline counts.

    Before attempt n+1, the client waits a random time up to ``initial * 2**(n-1)``, but at most
    ``maximum`` (exponential backoff with full jitter), or longer if ``Retry-After`` says so.
    """

    attempts: int = 5
    initial: float = 0.25
    maximum: float = 10.0
    deadline: float = 90.0

    def __post_init__(self) -> None:
        _check_types(self)
        if self.attempts < 1:
            raise ConfigurationError(f"RetryPolicy.attempts is {self.attempts}: expected 1 or more")
        _check_not_negative("RetryPolicy", initial=self.initial, maximum=self.maximum)
        _check_above_zero("RetryPolicy", deadline=self.deadline)

    @classmethod
    def never(cls) -> Self:
        """Return a policy that never retries."""
        return cls(attempts=1)


class BudgetStore(msgspec.Struct, frozen=True, kw_only=True):
    """The store through which clients share their rate budget.

    ``url`` is a secret, because it may contain a password. Clients share an account if they have
    the same API key and base URL, or the same ``account`` name and base URL. While the store is
    unavailable, each client uses the limits divided by ``fallback_parts``.
    """

    url: Secret
    account: str | None = None
    fallback_parts: int = 4

    def __post_init__(self) -> None:
        if type(self.url.reveal()) is not str:
            raise _wrong_store_type("URL", "a string")
        if type(self.account) not in {str, NoneType}:
            raise _wrong_store_type("account name", "a string or None")
        if type(self.fallback_parts) is not int:
            raise _wrong_store_type("fallback_parts", "an integer")
        if (problem := _store_problem(self.url.reveal())) is not None:
            raise ConfigurationError(f"the URL of a shared rate budget {problem}")
        if self.fallback_parts < 1:
            raise ConfigurationError(
                f"fallback_parts of a shared rate budget is {self.fallback_parts}: expected 1 or "
                "more"
            )
        if self.account == "":
            raise ConfigurationError(
                "the account name of a shared rate budget is empty: expected a name, or None for "
                "the account of the API key"
            )
        if self.is_redis and importlib.util.find_spec("redis") is None:
            raise ConfigurationError(
                f"the shared rate budget {self.name} needs redis-py: "
                "pip install 'neonctl-async[redis]'"
            )

    @property
    def is_redis(self) -> bool:
        """True for a Redis server, False for a file."""
        return urlsplit(self.url.reveal()).scheme in REDIS_SCHEMES

    @property
    def name(self) -> str:
        """The URL without user name, password and query."""
        parts = urlsplit(self.url.reveal())
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    @property
    def path(self) -> Path:
        """The path of the file, which is always absolute."""
        path = re.sub(r"^/+(?=~|[A-Za-z]:)", "", self.url.reveal().removeprefix("sqlite://"))
        return Path(re.sub("^/+", "/", path)).expanduser()

    def account_id(self, api_key: Secret, base_url: str) -> str:
        """Return the name under which the store keeps the account.

        It is a digest, from which the API key cannot be recovered.
        """
        if self.account is None:
            key, text = api_key.reveal().encode(), base_url.lower()
        else:
            key, text = b"account", f"{base_url.lower()} {self.account}"
        return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()[:32]


class RateBudget(msgspec.Struct, frozen=True, kw_only=True):
    """Limits on the requests of a client within any 60 seconds and any one second.

    The defaults are Neon's documented limits: an account may send 700 requests a minute, 40 a
    second to each route, and 10 a second that create organization keys. A route is a method and a
    path with ``{id}`` in place of each parameter. ``None`` means no limit.
    """

    per_minute: int | None = 700
    per_route_per_second: int | None = 40
    route_limits: Mapping[str, int] = msgspec.field(
        default_factory=lambda: {"POST /organizations/{id}/api_keys": 10}
    )
    store: BudgetStore | None = None
    """The store of a budget that was created by :meth:`shared`, or None."""

    def __post_init__(self) -> None:
        _check_types(self)
        limits = {
            "per_minute": self.per_minute,
            "per_route_per_second": self.per_route_per_second,
            **{
                f"route_limits[{shorten(route)}]": limit
                for route, limit in self.route_limits.items()
            },
        }
        for name, limit in limits.items():
            if limit is not None and limit < 1:
                raise ConfigurationError(
                    f"RateBudget.{name} is {limit}: expected 1 or more, or None for no limit"
                )

    @classmethod
    def unlimited(cls) -> Self:
        """Return a budget without limits."""
        return cls(per_minute=None, per_route_per_second=None, route_limits={})

    @classmethod
    def shared(
        cls,
        url: str | Secret,
        *,
        account: str | None = None,
        fallback_parts: int = 4,
        per_minute: int | None = 700,
        per_route_per_second: int | None = 40,
        route_limits: Mapping[str, int] | None = None,
    ) -> Self:
        """Return a budget that all clients of an account share, in any number of processes.

        ``url`` is ``sqlite:///path/to/file.db`` for processes on one machine, or
        ``redis://host:port/db`` (also ``rediss://`` and ``unix://``) for processes on many. Clients
        share the budget if they have the same API key and base URL or, with ``account``, the same
        account name and base URL. If the store is unavailable, each client logs a warning and uses
        the limits divided by ``fallback_parts``. Raises ConfigurationError for an invalid URL.
        """
        url = url if isinstance(url, Secret) else Secret(url)  # frames show no password
        limits = {} if route_limits is None else {"route_limits": route_limits}
        return cls(
            per_minute=per_minute,
            per_route_per_second=per_route_per_second,
            store=BudgetStore(url=url, account=account, fallback_parts=fallback_parts),
            **limits,
        )

    @classmethod
    def of_user(cls, base_url: str = DEFAULT_BASE_URL, *, fallback_parts: int = 4) -> Self:
        """Return the budget that all of the current user's programs on this machine share.

        The command line and the pytest plugin use this budget. ``NEON_RATE_BUDGET`` can name
        another store instead of the user's file; ``off`` disables sharing. Without the variable,
        the budget is not shared if the base URL is on this machine, or if the user's state folder
        is not writable. Raises ConfigurationError if the variable contains an invalid URL.
        """
        url = Secret(os.environ.get(BUDGET_VARIABLE, "").strip())
        if url.reveal() == "off":
            return cls()
        if url:
            try:
                return cls.shared(url, fallback_parts=fallback_parts)
            except ConfigurationError as error:
                raise ConfigurationError(f"{BUDGET_VARIABLE}: {error}, or off") from None
        if is_loopback(urlsplit(base_url).hostname or ""):
            return cls()
        try:
            folder = state_folder(os.environ)
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not os.access(folder, os.W_OK | os.X_OK):
                raise PermissionError(f"{folder} cannot be written")
        except (OSError, RuntimeError) as error:  # RuntimeError: no home directory
            _logger.info("the rate budget is not shared with other programs: %s", error)
            return cls()
        return cls.shared(f"sqlite:///{folder / 'rate-budget.db'}", fallback_parts=fallback_parts)

    def split(self, parts: int) -> Self:
        """Return the budget of each of ``parts`` clients that share one account.

        Each part allows at least one request per window, so the parts together exceed a limit that
        is below ``parts``. Raises ConfigurationError if ``parts`` is below 1.
        """
        if parts < 1:
            raise ConfigurationError(
                f"RateBudget cannot be split into {parts} parts: expected 1 or more"
            )

        def part(limit: int | None) -> int | None:
            return None if limit is None else max(limit // parts, 1)

        return type(self)(
            per_minute=part(self.per_minute),
            per_route_per_second=part(self.per_route_per_second),
            route_limits={
                route: max(limit // parts, 1) for route, limit in self.route_limits.items()
            },
            store=self.store,
        )

    def limit_of(self, route: str) -> int | None:
        """Return the maximum number of requests to ``route`` in any second; None means no limit."""
        return self.route_limits.get(route, self.per_route_per_second)


def state_folder(environment: Mapping[str, str], platform: str = sys.platform) -> Path:
    """Return the operating system's usual folder for the state of this library.

    Raises RuntimeError if the home directory is unknown.
    """
    if platform == "win32":
        base = environment.get("LOCALAPPDATA", "")
        parent = Path(base) if base else Path.home() / "AppData" / "Local"
    elif platform == "darwin":
        parent = Path.home() / "Library" / "Application Support"
    else:
        base = environment.get("XDG_STATE_HOME", "")
        # A relative XDG_STATE_HOME is invalid (XDG Base Directory Specification).
        parent = Path(base) if Path(base).is_absolute() else Path.home() / ".local" / "state"
    return parent / "neonctl-async"


def _wrong_store_type(name: str, expected: str) -> ConfigurationError:
    return ConfigurationError(f"the {name} of a shared rate budget is not {expected}")


def _store_problem(url: str) -> str | None:
    """Return what is wrong with a store's URL, or None, without quoting the URL (a secret)."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return f"is not a valid URL: expected {EXPECTED_STORE_URLS}"
    if parts.scheme == "sqlite":
        is_file = url.startswith("sqlite:///") and not re.search(r"[?\0]|/$", url)
        expected = "expected three slashes and a path, as in sqlite:///path/to/file.db"
        return None if is_file else f"names no file: {expected}"
    if parts.scheme == "unix":
        return None if parts.path.strip("/") else "names no socket: expected unix:///path/to/socket"
    if parts.scheme not in REDIS_SCHEMES:
        scheme = f"has the scheme {parts.scheme!r}" if parts.scheme else "has no scheme"
        return f"{scheme}: expected {EXPECTED_STORE_URLS}"
    has_host, has_database = host and port != 0, re.fullmatch(r"(/\d*)?", parts.path)
    if has_host and has_database:
        return None
    defect = "has a database that is not a number" if has_host else "names no host or no port"
    return f"{defect}: expected {parts.scheme}://host:port/db"


class PollPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Delays between the polls of a pending operation, in seconds.

    The first poll comes after ``initial``. Each further delay is ``growth`` times the previous one,
    up to ``maximum``. While hardly any of the minute's requests are used, no delay is longer than
    0.16 times ``maximum``. While the rate budget runs low, delays are longer. The default maximum
    is the interval that Neon suggests. ``jitter`` is the fraction by which a delay varies at
    random, in both directions. Once the client knows how long operations take, it polls when they
    usually finish.

    ``failed_grace`` is the delay before one more poll, which confirms the status ``failed`` of an
    operation without a ``retry_at``. ``missing_grace`` is how long a wait tolerates a 404 for an
    operation that was announced or seen. With 0, the first such record or 404 is final.
    """

    initial: float = 0.42
    growth: float = 1.4
    maximum: float = 5.0
    jitter: float = 0.1
    failed_grace: float = 1.0
    missing_grace: float = 5.0

    def __post_init__(self) -> None:
        _check_types(self)
        _check_above_zero("PollPolicy", initial=self.initial, maximum=self.maximum)
        if not (math.isfinite(self.growth) and self.growth >= 1):
            raise ConfigurationError(f"PollPolicy.growth is {self.growth}: expected 1 or more")
        if not 0 <= self.jitter < 1:
            raise ConfigurationError(
                f"PollPolicy.jitter is {self.jitter}: expected 0 <= jitter < 1"
            )
        _check_not_negative(
            "PollPolicy", failed_grace=self.failed_grace, missing_grace=self.missing_grace
        )

    @classmethod
    def constant(cls, interval: float) -> Self:
        """Return a policy that polls every ``interval`` seconds, without jitter."""
        return cls(initial=interval, growth=1.0, maximum=interval, jitter=0.0)


KeyFunction: TypeAlias = Callable[[], str | Secret | Awaitable[str | Secret]]
"""A sync or async function that returns the API key."""


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """The validated settings of a client. ``base_url`` does not end with a slash.

    With ``key_function``, ``api_key`` is empty.
    """

    api_key: Secret
    key_function: KeyFunction | None = None
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
                raise ConfigurationError(f"{name} is {value}: expected 1 or more")
        store = self.budget.store
        if self.key_function is not None and store is not None and store.account is None:
            raise ConfigurationError(
                "the shared rate budget has no account name, and the API key of a function may "
                "change: pass RateBudget.shared(…, account='NAME')"
            )


def resolve_api_key(argument: Secret | None, environment: Secret) -> Secret:
    """Return the API key from the argument, or from the environment if the argument is None.

    Raises ConfigurationError if the key is missing or not a bearer token (RFC 6750, section 2.1).
    """
    value = environment if argument is None else argument
    _check_text("api_key", value)
    if not value.reveal().strip():
        raise ConfigurationError(
            f"no API key: set the environment variable {API_KEY_VARIABLE} or pass api_key="
        )
    return check_api_key(value)


def check_api_key(value: Secret) -> Secret:
    """Return the key without whitespace around it. Raises ConfigurationError if it is invalid."""
    key = Secret(value.reveal().strip())
    if not key:
        raise ConfigurationError("the API key is empty")
    if not _TOKEN.fullmatch(key.reveal()):
        raise ConfigurationError(
            "the API key contains a space, a line break, a quote or another character that no key "
            "has: check that it was copied completely and without surrounding text"
        )
    return key


_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/-]+=*")


def resolve_http_hosts(argument: Sequence[str] | None, environment: str) -> frozenset[str]:
    """Return the hosts that plain http is allowed for, from the argument or the environment.

    The environment variable is a comma-separated list. Raises ConfigurationError for a value that
    is not a host name or an IP address, and for Neon's own hosts.
    """
    values = environment.split(",") if argument is None else argument
    source = ALLOW_HTTP_VARIABLE if argument is None else "allow_http"
    example = "as in allow_http=['control-plane']"
    if not _are_texts(values):
        raise ConfigurationError(
            f"{source} is {shorten(values)}: expected a sequence of host names, {example}"
        )
    hosts = frozenset(host for value in values if (host := value.strip().strip("[]").lower()))
    for host in hosts:
        if not _HOST.fullmatch(host):
            raise ConfigurationError(
                f"{source} contains {shorten(host)}: expected a host name or an IP address, "
                f"without a scheme, port or wildcard, {example}"
            )
        if f".{host.rstrip('.')}".endswith(_NEON_DOMAINS):
            raise ConfigurationError(
                f"{source} contains {shorten(host)}: requests to Neon are always encrypted, so use "
                "https"
            )
    return hosts


def _are_texts(values: Iterable[object]) -> bool:
    with suppress(TypeError):  # not iterable
        return not isinstance(values, str) and all(isinstance(value, str) for value in values)
    return False


_HOST: Final = re.compile(r"[\w.-]+|[0-9a-f:.]+", re.ASCII)
_NEON_DOMAINS: Final = (".neon.tech", ".neon.com", ".neon.build")


def resolve_base_url(
    argument: Secret | None, environment: Secret, http_hosts: AbstractSet[str] = frozenset()
) -> str:
    """Return the base URL from the argument, or else from the environment, or else Neon's.

    The values are secrets because a mistaken URL may contain a key or a password. Raises
    ConfigurationError unless the URL is https, or http to a loopback address or one of
    ``http_hosts``.
    """
    source = BASE_URL_VARIABLE if argument is None else "base_url"
    value = (environment or Secret(DEFAULT_BASE_URL)) if argument is None else argument
    _check_text("base_url", value)
    problem = _url_problem(value.reveal().strip(), http_hosts)
    if problem is not None:
        raise ConfigurationError(f"{source} {problem}")
    return value.reveal().strip().rstrip("/")


def _url_problem(url: str, http_hosts: AbstractSet[str]) -> str | None:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        host.encode("idna")
    except ValueError:
        return f"is not a valid URL: expected a URL like {DEFAULT_BASE_URL}"
    if "@" in parts.netloc:
        return f"contains a user name or password: expected a URL like {DEFAULT_BASE_URL}"
    if parts.scheme not in {"http", "https"} or not host or port == 0:
        # A value without a dot or a colon may be an API key in the wrong place.
        shown = shorten(url) if "." in url or ":" in url else "not a URL"
        return (
            f"is {shown}: expected a scheme, a host and the version segment, "
            f"as in {DEFAULT_BASE_URL}"
        )
    if not re.fullmatch(r"[!-~]+", url) or set(url) & set("?#\\"):
        return (
            "contains a space, a backslash, a query, a fragment or a character that is not ASCII: "
            f"expected a URL like {DEFAULT_BASE_URL}"
        )
    if parts.scheme == "http" and not is_loopback(host) and host not in http_hosts:
        return (
            f"is {shorten(url)}: plain http would send the API key unencrypted; use https. For a "
            f"local control plane in a network that you trust, pass allow_http=[{host!r}] or set "
            f"{ALLOW_HTTP_VARIABLE}={host}"
        )
    return None


def check_hooks(hooks: Iterable[Hooks]) -> tuple[Hooks, ...]:
    """Return ``hooks`` as a tuple. Raises ConfigurationError unless each item is a Hooks."""
    with suppress(TypeError):  # not iterable
        items = tuple(hooks)
        if {type(item) for item in items} <= {Hooks}:
            return items
    raise ConfigurationError(
        f"hooks is {shorten(hooks)}: expected a sequence of Hooks, as in hooks=[Hooks(on_status=…)]"
    )


def as_secret(value: str | Secret | None) -> Secret | None:
    """Return ``value`` as a Secret, so that tracebacks do not show it."""
    return value if value is None or isinstance(value, Secret) else Secret(value)


def split_api_key(
    value: str | Secret | KeyFunction | None,
) -> tuple[Secret | None, KeyFunction | None]:
    """Split ``api_key`` into a key and a key function, at most one of which is set."""
    return (None, _Hidden(value)) if callable(value) else (as_secret(value), None)


class _Hidden:
    """A wrapper whose repr hides a function's arguments, such as a token in a ``partial``."""

    def __init__(self, function: KeyFunction) -> None:
        self._function = function

    def __call__(self) -> str | Secret | Awaitable[str | Secret]:
        return self._function()


def _check_text(name: str, value: Secret) -> None:
    # No variable holds the content, because tracebacks show variables.
    kind: type[object] = type(value.reveal())
    if issubclass(kind, Coroutine):
        cast("Coroutine[object, None, object]", value.reveal()).close()
        raise ConfigurationError(f"{name} is a coroutine: pass the function, without calling it")
    if kind is not str:
        raise ConfigurationError(f"{name} is of type {kind.__name__}: expected a string")


def is_loopback(host: str) -> bool:
    """Return whether ``host`` is a loopback address or ``localhost``."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check_types(settings: msgspec.Struct) -> None:
    """Raise ConfigurationError if a setting does not have its field's type."""
    owner = "" if isinstance(settings, Config) else f"{type(settings).__name__}."
    for field in msgspec.structs.fields(settings):
        value = getattr(settings, field.name)
        try:
            msgspec.convert(value, field.type)
        except msgspec.ValidationError as error:
            raise ConfigurationError(
                f"{owner}{field.name} is {shorten(value)}: expected {_expected(field)}"
            ) from error


def _expected(field: msgspec.structs.FieldInfo) -> str:
    """Return the type of a setting in words, with an example if it is a Struct."""
    name = getattr(field.type, "__name__", str(field.type))
    if not (isinstance(field.type, type) and issubclass(field.type, msgspec.Struct)):
        return name
    [first, *_] = msgspec.structs.fields(field.type)
    return f"{name}, as in {field.name}={name}({first.name}={first.default})"


def _check_above_zero(owner: str, **values: float) -> None:
    for name, value in values.items():
        if not (math.isfinite(value) and value > 0):
            raise ConfigurationError(f"{owner}.{name} is {value}: expected seconds above 0")


def _check_not_negative(owner: str, **values: float) -> None:
    for name, value in values.items():
        if not (math.isfinite(value) and value >= 0):
            raise ConfigurationError(f"{owner}.{name} is {value}: expected seconds, 0 or more")
