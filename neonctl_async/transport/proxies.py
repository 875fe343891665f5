"""The proxy from the environment. aiohttp could read it, but then it would read netrc too."""

from base64 import b64encode
from typing import NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from yarl import URL

from neonctl_async.errors import ConfigurationError
from neonctl_async.models.secret import Secret


class Proxy(NamedTuple):
    """The URL of a proxy, and its ``Proxy-Authorization`` header; empty without a user name."""

    url: URL
    authorization: Secret


def proxy_for(base_url: str) -> Proxy | None:
    """Return the proxy that ``HTTPS_PROXY`` names, or None.

    The result is None if ``NO_PROXY`` includes the host of ``base_url``, and for plain http,
    because a proxy could read the API key. Raises ConfigurationError unless ``HTTPS_PROXY`` is the
    http URL of a proxy.
    """
    base = urlsplit(base_url)
    value = Secret(getproxies().get("https", ""))
    if base.scheme != "https" or not value or proxy_bypass(base.hostname or ""):
        return None
    proxy = _parse(value)
    if proxy is None:
        raise ConfigurationError("HTTPS_PROXY is not the URL of a proxy: expected http://host:port")
    return proxy


def _parse(value: Secret) -> Proxy | None:
    try:
        url = URL(value.reveal())
    except ValueError:
        return None
    if url.scheme != "http" or not url.host or ":" in (url.user or ""):
        return None
    credentials = f"{url.user}:{url.password or ''}".encode()
    authorization = f"Basic {b64encode(credentials).decode()}" if url.user else ""
    return Proxy(url.with_user(None), Secret(authorization))
