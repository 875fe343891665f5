"""The proxy that the environment names: read here, since aiohttp would take netrc with it."""

from base64 import b64encode
from typing import NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from yarl import URL

from neonctl_async.errors import ConfigurationError
from neonctl_async.models.secret import Secret


class Proxy(NamedTuple):
    """Where it is, and the value of ``Proxy-Authorization``, empty without a user name."""

    url: URL
    authorization: Secret


def proxy_for(base_url: str) -> Proxy | None:
    """The proxy of ``HTTPS_PROXY``, if ``base_url`` is https and its host not in ``NO_PROXY``.

    A proxy would read what goes to loopback in clear, and with it the key. Raises
    ConfigurationError for what is no URL of a proxy.
    """
    base = urlsplit(base_url)
    found = Secret(getproxies().get("https", ""))
    if base.scheme != "https" or not found or proxy_bypass(base.hostname or ""):
        return None
    proxy = _parse(found)
    if proxy is None:
        raise ConfigurationError("HTTPS_PROXY is no URL of a proxy, such as http://host:port")
    return proxy


def _parse(found: Secret) -> Proxy | None:
    try:
        url = URL(found.reveal())
    except ValueError:
        return None
    if url.scheme != "http" or not url.host or ":" in (url.user or ""):
        return None
    credentials = f"{url.user}:{url.password or ''}".encode()
    authorization = f"Basic {b64encode(credentials).decode()}" if url.user else ""
    return Proxy(url.with_user(None), Secret(authorization))
