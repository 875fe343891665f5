"""Proxies from the environment: used only with trust_env, and only for https."""

import os
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from neonctl_async import ConfigurationError, ConnectionFailedError, NeonClient, RetryPolicy
from tests.support.proxy import ConnectProxy
from tests.support.records import API_KEY, client_of
from tests.support.server import OK, MisbehavingServer, Respond, drop, in_sequence, raw
from tests.transport.tls import server_with


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The environment variables, without any proxy."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    return monkeypatch


@pytest.fixture
async def server(certificates: dict[str, ssl.SSLContext]) -> AsyncIterator[MisbehavingServer]:
    """A server with TLS."""
    async with server_with(certificates["good"]) as server:
        yield server


@pytest.mark.parametrize("trust_env", [False, True])
async def test_proxy_from_the_environment_is_used_only_with_trust_env(
    server: MisbehavingServer, ca_file: Path, environment: pytest.MonkeyPatch, trust_env: bool
) -> None:
    async with ConnectProxy() as proxy:
        environment.setenv("HTTPS_PROXY", proxy.url.replace("://", "://ada:lovelace@"))
        async with client_of(server, ca_file=ca_file, trust_env=trust_env) as neon:
            await neon.request("GET", "/projects")
        assert len(proxy.heads) == trust_env
        assert all(API_KEY not in head for head in proxy.heads)
        assert all("Proxy-Authorization: Basic YWRhOmxvdmVsYWNl" in head for head in proxy.heads)
    assert server.received[0].headers["authorization"] == f"Bearer {API_KEY}"


async def test_plain_http_to_loopback_uses_no_proxy(environment: pytest.MonkeyPatch) -> None:
    async with ConnectProxy() as proxy, MisbehavingServer(in_sequence(OK)) as server:
        environment.setenv("HTTP_PROXY", proxy.url)
        async with client_of(server, trust_env=True) as neon:
            await neon.request("GET", "/projects")
        assert proxy.heads == []


async def test_refusal_of_the_proxy_means_nothing_was_sent(
    server: MisbehavingServer, ca_file: Path, environment: pytest.MonkeyPatch
) -> None:
    async with ConnectProxy(407) as proxy:
        environment.setenv("HTTPS_PROXY", proxy.url)
        settings = {"ca_file": ca_file, "trust_env": True, "retry": RetryPolicy.never()}
        async with client_of(server, **settings) as neon:
            with pytest.raises(ConnectionFailedError, match="407") as caught:
                await neon.api_keys.create(key_name="ci")
    assert not caught.value.maybe_delivered


@pytest.mark.parametrize("response", [drop(), raw(b"no HTTP\r\n\r\n")])
async def test_broken_connection_to_the_proxy_means_nothing_was_sent(
    server: MisbehavingServer, ca_file: Path, environment: pytest.MonkeyPatch, response: Respond
) -> None:
    async with MisbehavingServer(lambda _: response) as proxy:
        environment.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        async with client_of(server, ca_file=ca_file, trust_env=True) as neon:
            with pytest.raises(ConnectionFailedError) as caught:
                await neon.api_keys.create(key_name="ci")
            assert neon.requests_sent == RetryPolicy().attempts
    assert not caught.value.maybe_delivered


async def test_refused_connection_to_the_proxy_names_the_proxy(
    server: MisbehavingServer, ca_file: Path, environment: pytest.MonkeyPatch
) -> None:
    async with ConnectProxy() as proxy:
        environment.setenv("HTTPS_PROXY", proxy.url)
        port = proxy.port
    settings = {"ca_file": ca_file, "trust_env": True, "retry": RetryPolicy.never()}
    async with client_of(server, **settings) as neon:
        with pytest.raises(ConnectionFailedError, match=f"the proxy 127.0.0.1:{port}"):
            await neon.api_keys.create(key_name="ci")


@pytest.mark.parametrize("host", ["localhost", "*"])
async def test_hosts_in_no_proxy_are_called_directly(
    server: MisbehavingServer, ca_file: Path, environment: pytest.MonkeyPatch, host: str
) -> None:
    environment.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    environment.setenv("NO_PROXY", host)
    async with client_of(server, ca_file=ca_file, trust_env=True) as neon:
        assert await neon.request("GET", "/projects") == {"ok": True}


@pytest.mark.parametrize(
    "proxy",
    [
        "proxy",
        "ada:lovelace@127.0.0.1:9",
        "http://ada:lovelace@127.0.0.1:99999",
        "http://ada:lovelace@127.0.0.1:port",
        "http://ada:lovelace@[::1",
        "http://a%3ada:lovelace@127.0.0.1:9",
        "http://",
        "https://ada:lovelace@127.0.0.1:9",
        "socks5://ada:lovelace@127.0.0.1:9",
    ],
)
def test_invalid_proxy_is_refused_without_showing_its_password(
    environment: pytest.MonkeyPatch, proxy: str
) -> None:
    environment.setenv("HTTPS_PROXY", proxy)
    with pytest.raises(ConfigurationError, match="HTTPS_PROXY") as caught:
        NeonClient(API_KEY, trust_env=True)
    assert "lovel" not in str(caught.value)
    NeonClient(API_KEY)


@pytest.fixture
def netrc(environment: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "netrc"
    path.write_text("machine localhost login ada password lovelace\n")
    path.chmod(0o600)
    environment.setenv("NETRC", str(path))


@pytest.mark.usefixtures("netrc")
async def test_netrc_password_does_not_replace_the_key(
    server: MisbehavingServer, ca_file: Path
) -> None:
    async with client_of(server, ca_file=ca_file, trust_env=True) as neon:
        await neon.request("GET", "/projects")
    assert server.received[0].headers["authorization"] == f"Bearer {API_KEY}"
