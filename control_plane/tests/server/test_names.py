"""The names of a server. Their use in requests is tested with the admission of requests."""

import pytest

from neonctl_local import LocalControlPlane
from neonctl_local.server.names import ServerNames, is_loopback, parse_authority


@pytest.mark.parametrize(
    ("text", "authority"),
    [
        *(("localhost", ("localhost", None)), ("LocalHost.:080", ("localhost", 80))),
        *(("[::1]:8080", ("::1", 8080)), ("[::1]", ("::1", None)), ("a_b-c.d:1", ("a_b-c.d", 1))),
        *(("", None), (":80", None), (".", None), ("a:", None), ("a:b", None), ("a:123456", None)),
        *(("a b", None), ("a/b", None), ("a@b", None), ("::1", None), ("[a", None), ("a\n", None)),
        *(("\u0661.1.1.1", None), ("a:\u0661", None), ("a" * 254, None)),
    ],
)
def test_authority_has_a_host_and_an_optional_port(
    text: str, authority: tuple[str, int | None] | None
) -> None:
    assert parse_authority(text) == authority


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        *(("localhost", True), ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True)),
        *(("0.0.0.0", False), ("::", False), ("10.0.0.1", False), ("localhost.evil", False)),
    ],
)
def test_loopback_names(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


def test_server_on_port_80_needs_no_port() -> None:
    names = ServerNames("127.0.0.1", exposed=False, ports=frozenset({80}))
    assert names.include(("localhost", None))
    assert not names.include(("localhost", 8080))
    assert str(names) == "127.0.0.1:80 or localhost:80"


@pytest.mark.parametrize("name", ["", "http://a", "a b", "a:b", "*"])
def test_allowed_host_that_is_not_a_host_is_rejected(name: str) -> None:
    with pytest.raises(ValueError, match="the allowed host is "):
        LocalControlPlane(allowed_hosts=[name])


def test_allowed_hosts_are_a_list() -> None:
    with pytest.raises(TypeError, match="pass a list"):
        LocalControlPlane(allowed_hosts="control-plane")
