"""Plain http to named hosts, such as a local control plane in another container."""

import re
import socket
from typing import Any

import pytest

from neonctl_async import ConfigurationError, NeonClient, NeonError
from neonctl_async.transport.proxies import proxy_for
from neonctl_local import LocalControlPlane
from tests.support.records import API_KEY
from tests.support.server import MisbehavingServer, http_response

NAME = "control-plane"
URL = f"http://{NAME}:8080/api/v2"


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Make every name an alias of 127.0.0.1. Return the names that were looked up."""
    looked_up: set[str] = set()
    resolve = socket.getaddrinfo

    def local(host: str, *args: Any, **kwargs: Any) -> Any:
        looked_up.add(host)
        return resolve("127.0.0.1", *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", local)
    return looked_up


@pytest.mark.usefixtures("names")
async def test_exposed_address_works_with_the_remedy_of_its_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with LocalControlPlane(host="0.0.0.0", expose=NAME) as server:
        monkeypatch.setenv("NEON_API_HOST", server.base_url)
        monkeypatch.setenv("NEON_API_KEY", server.api_key)
        with pytest.raises(ConfigurationError, match="plain http") as caught:
            NeonClient()
        remedy = re.search("set (NEON_ALLOW_HTTP)=(.*)$", str(caught.value))
        assert remedy is not None
        monkeypatch.setenv(*remedy.groups())
        async with NeonClient() as neon:
            assert await neon.projects.list().collect() == []


async def test_key_is_not_sent_to_other_hosts_by_a_redirect(names: set[str]) -> None:
    moved = http_response(302, headers={"Location": "http://other-host/api/v2/regions"})
    async with MisbehavingServer(lambda _request: moved) as server:
        url = server.base_url.replace("127.0.0.1", NAME)
        async with NeonClient(API_KEY, base_url=url, allow_http=[NAME, "other-host"]) as neon:
            with pytest.raises(NeonError, match="302"):
                await neon.regions.list()
    assert names == {NAME}


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        (URL, [NAME]),
        ("http://Control-Plane/api/v2", ["CONTROL-PLANE"]),
        ("http://192.168.0.7:8080/api/v2", ["other", "192.168.0.7"]),
        ("http://[2001:db8::1]:8080/api/v2", ["2001:db8::1"]),
        ("http://[2001:db8::1]:8080/api/v2", ["[2001:db8::1]"]),
    ],
)
def test_http_is_allowed_for_named_hosts(
    url: str, hosts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert NeonClient(API_KEY, base_url=url, allow_http=hosts).base_url == url
    monkeypatch.setenv("NEON_ALLOW_HTTP", f" {' , '.join(hosts)},")
    assert NeonClient(API_KEY, base_url=url).base_url == url


@pytest.mark.parametrize(
    "url",
    [
        *("http://control-plane-2/api/v2", "http://a.control-plane/api/v2"),
        *("http://control-plane.example.com/api/v2", "http://0.0.0.0/api/v2"),
        "http://console.neon.tech/api/v2",
    ],
)
def test_http_is_refused_for_all_other_hosts(url: str) -> None:
    with pytest.raises(ConfigurationError, match="plain http"):
        NeonClient(API_KEY, base_url=url, allow_http=[NAME])


def test_argument_overrides_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEON_ALLOW_HTTP", NAME)
    with pytest.raises(ConfigurationError, match="plain http"):
        NeonClient(API_KEY, base_url=URL, allow_http=[])


@pytest.mark.parametrize(
    ("hosts", "words"),
    [
        ("control-plane", "allow_http is 'control-plane': expected a sequence of host names"),
        ([7], "expected a sequence of host names"),
        (7, "expected a sequence of host names"),
        (["*"], "allow_http contains '\\*': expected a host name"),
        (["http://control-plane"], "without a scheme, port or wildcard"),
        (["control-plane:8080"], "without a scheme, port or wildcard"),
        (["console.neon.tech"], "requests to Neon are always encrypted"),
        (["NEON.tech."], "requests to Neon are always encrypted"),
    ],
)
def test_value_that_names_no_host_is_refused(hosts: Any, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        NeonClient(API_KEY, allow_http=hosts)


def test_wrong_environment_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEON_ALLOW_HTTP", "https://control-plane")
    with pytest.raises(ConfigurationError, match=r"^NEON_ALLOW_HTTP contains"):
        NeonClient(API_KEY)


def test_named_host_is_never_reached_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example.com:3128")
    assert proxy_for("https://neon.example.com/api/v2") is not None
    assert proxy_for(URL) is None
