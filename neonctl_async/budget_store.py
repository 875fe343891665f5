"""The address of a shared rate budget."""

import hashlib
import hmac
import importlib.util
import re
from pathlib import Path
from types import NoneType
from urllib.parse import urlsplit

import msgspec

from neonctl_async.errors import ConfigurationError
from neonctl_async.models.secret import Secret

EXPECTED_URLS = (
    "sqlite:///path/to/file.db, redis://host:port/db, rediss://host:port/db or unix:///socket"
)
REDIS_SCHEMES = ("redis", "rediss", "unix")


class BudgetStore(msgspec.Struct, frozen=True, kw_only=True):
    """The store that clients share their rate budget through.

    ``url`` is a secret, because it may contain a password. Clients share an account if they have
    the same API key and base URL, or the same ``account`` name and base URL. While the store cannot
    be used, each client uses one of ``fallback_parts`` parts of the limits.
    """

    url: Secret
    account: str | None = None
    fallback_parts: int = 4

    def __post_init__(self) -> None:
        if type(self.url.reveal()) is not str:
            raise _wrong_type("URL", "a string")
        if type(self.account) not in {str, NoneType}:
            raise _wrong_type("account name", "a string or None")
        if type(self.fallback_parts) is not int:
            raise _wrong_type("fallback_parts", "an integer")
        if (problem := _problem(self.url.reveal())) is not None:
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

        It is a digest: nobody can compute the API key from it.
        """
        if self.account is None:
            key, text = api_key.reveal().encode(), base_url.lower()
        else:
            key, text = b"account", f"{base_url.lower()} {self.account}"
        return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()[:32]


def _wrong_type(name: str, expected: str) -> ConfigurationError:
    return ConfigurationError(f"the {name} of a shared rate budget is not {expected}")


def _problem(url: str) -> str | None:
    """Return the defect of a URL, without the URL, which may contain a password."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return f"is not a valid URL: expected {EXPECTED_URLS}"
    if parts.scheme == "sqlite":
        is_file = url.startswith("sqlite:///") and not re.search(r"[?\0]|/$", url)
        expected = "expected three slashes and a path, as in sqlite:///path/to/file.db"
        return None if is_file else f"names no file: {expected}"
    if parts.scheme == "unix":
        return None if parts.path.strip("/") else "names no socket: expected unix:///path/to/socket"
    if parts.scheme not in REDIS_SCHEMES:
        scheme = f"has the scheme {parts.scheme!r}" if parts.scheme else "has no scheme"
        return f"{scheme}: expected {EXPECTED_URLS}"
    has_host, has_database = host and port != 0, re.fullmatch(r"(/\d*)?", parts.path)
    if has_host and has_database:
        return None
    defect = "has a database that is not a number" if has_host else "names no host or no port"
    return f"{defect}: expected {parts.scheme}://host:port/db"
