"""Whom a client trusts with its key: the base URL, certified, and proxies only if asked to."""

import os
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme

from neonctl_async import ConfigurationError, ConnectionFailedError, NeonClient, RetryPolicy
from tests.support.proxy import ConnectProxy
from tests.support.records import API_KEY, client_of
from tests.support.server import MisbehavingServer, http_response, in_turn
from tests.support.tls import certified


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def ca_file(authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("ca") / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return path


@pytest.fixture(scope="module")
def certificates(authority: trustme.CA) -> dict[str, ssl.SSLContext]:
    """What servers show of themselves, by what is special about it."""
    yesterday = datetime.now(UTC) - timedelta(days=1)
    return {
        "good": certified(authority, "localhost"),
        "of another host": certified(authority, "elsewhere.example.com"),
        "expired": certified(authority, "localhost", not_after=yesterday),
    }


def serving(tls: ssl.SSLContext) -> MisbehavingServer:
    return MisbehavingServer(in_turn(http_response(content={"answered": True})), tls)


async def test_a_certificate_of_a_trusted_authority_is_accepted(
    certificates: dict[str, ssl.SSLContext], ca_file: Path
) -> None:
    async with (
        serving(certificates["good"]) as server,
        client_of(server, ca_file=ca_file) as neon,
    ):
        assert await neon.request("GET", "/projects") == {"answered": True}


@pytest.mark.parametrize(
    ("certificate", "is_trusted", "reason"),
    [
        ("good", False, "unable to get local issuer certificate.*ca_file"),
        ("of another host", True, "not valid for 'localhost'"),
        ("expired", True, "expired"),
    ],
)
async def test_any_other_certificate_is_refused_before_anything_is_sent(
    certificates: dict[str, ssl.SSLContext],
    ca_file: Path,
    certificate: str,
    is_trusted: bool,
    reason: str,
) -> None:
    ca = ca_file if is_trusted else None
    async with (
        serving(certificates[certificate]) as server,
        client_of(server, ca_file=ca, retry=RetryPolicy.never()) as neon,
    ):
        with pytest.raises(ConnectionFailedError, match=reason) as caught:
            await neon.api_keys.create(key_name="ci")
    assert not caught.value.maybe_delivered
    assert server.received == []


def test_a_ca_file_that_is_not_there_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"ca_file is .*none\.pem"):
        NeonClient(API_KEY, ca_file=tmp_path / "none.pem")


@pytest.mark.parametrize("name", ["", "a\0b"])
def test_a_ca_file_without_a_usable_name_is_told_at_once(name: str) -> None:
    with pytest.raises(ConfigurationError, match="ca_file is"):
        NeonClient(API_KEY, ca_file=name)


def test_a_ca_file_that_holds_no_certificate_is_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "empty.pem"
    path.write_text("no certificate")
    with pytest.raises(ConfigurationError, match="PEM"):
        NeonClient(API_KEY, ca_file=path)


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment that names no proxy yet."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    return monkeypatch


@pytest.mark.parametrize("trust_env", [False, True])
async def test_a_proxy_of_the_environment_is_used_only_if_asked_for(
    certificates: dict[str, ssl.SSLContext],
    ca_file: Path,
    environment: pytest.MonkeyPatch,
    trust_env: bool,
) -> None:
    async with (
        ConnectProxy() as proxy,
        serving(certificates["good"]) as server,
    ):
        environment.setenv("HTTPS_PROXY", proxy.url.replace("://", "://ada:lovelace@"))
        async with client_of(server, ca_file=ca_file, trust_env=trust_env) as neon:
            await neon.request("GET", "/projects")
        assert len(proxy.heads) == trust_env
        assert all(API_KEY not in head for head in proxy.heads)
        assert all("Proxy-Authorization: Basic YWRhOmxvdmVsYWNl" in head for head in proxy.heads)
    assert server.received[0].headers["authorization"] == f"Bearer {API_KEY}"


async def test_plain_http_to_loopback_goes_through_no_proxy(
    environment: pytest.MonkeyPatch,
) -> None:
    """A proxy would see the key in clear."""
    async with (
        ConnectProxy() as proxy,
        MisbehavingServer(in_turn(http_response(content={}))) as server,
    ):
        environment.setenv("HTTP_PROXY", proxy.url)
        async with client_of(server, trust_env=True) as neon:
            await neon.request("GET", "/projects")
        assert proxy.heads == []


async def test_a_proxy_that_refuses_means_nothing_was_sent(
    certificates: dict[str, ssl.SSLContext], ca_file: Path, environment: pytest.MonkeyPatch
) -> None:
    async with (
        ConnectProxy(407) as proxy,
        serving(certificates["good"]) as server,
    ):
        environment.setenv("HTTPS_PROXY", proxy.url)
        settings = {"ca_file": ca_file, "trust_env": True, "retry": RetryPolicy.never()}
        async with client_of(server, **settings) as neon:
            with pytest.raises(ConnectionFailedError, match="407") as caught:
                await neon.api_keys.create(key_name="ci")
    assert not caught.value.maybe_delivered


async def test_a_proxy_that_is_not_there_is_told_as_that(
    certificates: dict[str, ssl.SSLContext], ca_file: Path, environment: pytest.MonkeyPatch
) -> None:
    async with ConnectProxy() as proxy:
        environment.setenv("HTTPS_PROXY", proxy.url)
        port = proxy.port
    async with serving(certificates["good"]) as server:
        settings = {"ca_file": ca_file, "trust_env": True, "retry": RetryPolicy.never()}
        async with client_of(server, **settings) as neon:
            with pytest.raises(ConnectionFailedError, match=f"the proxy 127.0.0.1:{port}"):
                await neon.api_keys.create(key_name="ci")


@pytest.mark.parametrize("host", ["localhost", "*"])
async def test_no_proxy_excepts_hosts(
    certificates: dict[str, ssl.SSLContext],
    ca_file: Path,
    environment: pytest.MonkeyPatch,
    host: str,
) -> None:
    environment.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    environment.setenv("NO_PROXY", host)
    async with (
        serving(certificates["good"]) as server,
        client_of(server, ca_file=ca_file, trust_env=True) as neon,
    ):
        assert await neon.request("GET", "/projects") == {"answered": True}


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
def test_a_proxy_that_cannot_be_used_is_told_at_once_without_its_password(
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
async def test_a_password_of_the_netrc_file_does_not_replace_the_key(
    certificates: dict[str, ssl.SSLContext], ca_file: Path
) -> None:
    async with (
        serving(certificates["good"]) as server,
        client_of(server, ca_file=ca_file, trust_env=True) as neon,
    ):
        await neon.request("GET", "/projects")
    assert server.received[0].headers["authorization"] == f"Bearer {API_KEY}"
