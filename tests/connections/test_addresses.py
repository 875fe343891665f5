import pytest

from neonctl_async.connections.addresses import (
    USER,
    Address,
    address_of_host,
    address_of_uri,
    names_compute,
)
from neonctl_async.models.connection_uri import ConnectionUri

NEON = "ep-late-frost-12345678.us-east-2.aws.neon.tech"
LOCAL = "postgresql://ada:npg_secret@127.0.0.1:6432/shop?options=endpoint%3Dep-a-1&sslmode=disable"


def address_of(uri: str) -> Address:
    return address_of_uri(ConnectionUri(uri))


def test_uri_of_neon_has_the_default_port_and_needs_tls() -> None:
    address = address_of(f"postgresql://ada:npg_secret@{NEON}/shop?sslmode=require")
    assert address == Address(NEON, 5432, {"user": "ada", "database": "shop"})
    assert str(address) == f"{NEON}:5432"
    assert address.endpoint_id == "ep-late-frost-12345678"


def test_uri_of_the_local_control_plane_selects_the_compute_by_an_option() -> None:
    address = address_of(LOCAL)
    assert (address.host, address.port, address.uses_tls) == ("127.0.0.1", 6432, False)
    assert address.parameters == {"user": "ada", "database": "shop", "options": "endpoint=ep-a-1"}
    assert address.endpoint_id == "ep-a-1"


def test_address_has_no_password() -> None:
    assert "npg_secret" not in repr(address_of(LOCAL))


@pytest.mark.parametrize(
    ("mode", "uses_tls", "needs_tls"),
    [
        ("disable", False, False),
        ("allow", True, False),
        ("prefer", True, False),
        (None, True, False),
        ("require", True, True),
        ("verify-full", True, True),
    ],
)
def test_sslmode_sets_the_use_of_tls(mode: str | None, uses_tls: bool, needs_tls: bool) -> None:
    query = "" if mode is None else f"?sslmode={mode}"
    address = address_of(f"postgresql://ada@{NEON}/shop{query}")
    assert (address.uses_tls, address.needs_tls) == (uses_tls, needs_tls)


def test_names_are_decoded() -> None:
    address = address_of("postgresql://a%40b:p@[::1]:1/x%2Fy?options=endpoint%3De%20-c%20a%3D1")
    assert address.parameters == {"user": "a@b", "database": "x/y", "options": "endpoint=e -c a=1"}
    assert str(address) == "[::1]:1"


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "postgresql://ada:npg_secret@/shop",
        "postgresql://ada:npg_secret@host:npg_secret/shop",
        "postgresql://ada:npg_secret@[::1/shop",
    ],
)
def test_invalid_uri_is_refused_without_its_password(uri: str) -> None:
    with pytest.raises(ValueError, match="URI") as caught:
        address_of(uri)
    assert "npg_secret" not in str(caught.value)


def test_host_of_neon_has_the_default_port() -> None:
    assert address_of_host(NEON) == Address(NEON, 5432, {"user": USER})


@pytest.mark.parametrize(
    ("address", "endpoint_id"),
    [
        (address_of_host("ep-a-1-pooler.neon.tech"), "ep-a-1"),
        (address_of_host("localhost"), None),
        (address_of_host("db.example.com"), None),
        (address_of("postgresql://a@h/b?options=project%3Dep-b-2-pooler"), "ep-b-2"),
        (address_of("postgresql://a@h/b?options=-c%20endpoint%3Dx"), "x"),
        (address_of("postgresql://a@h/b?options=-c%20x%3D1"), None),
    ],
)
def test_compute_of_an_address(address: Address, endpoint_id: str | None) -> None:
    assert address.endpoint_id == endpoint_id


def test_computes_behind_one_proxy_differ_by_the_option() -> None:
    uri = "postgresql://ada@localhost:6432/shop?options=-c%20x%3D1%20endpoint%3Dep-a-1"
    sibling = address_of(uri).of_compute("ep-b-2")
    assert sibling is not None
    assert sibling.parameters["options"] == "endpoint=ep-b-2 -c x=1"
    assert (sibling.port, sibling.endpoint_id) == (6432, "ep-b-2")


def test_host_name_of_one_compute_is_not_used_for_another() -> None:
    assert address_of_host(NEON).of_compute("ep-b-2") is None


@pytest.mark.parametrize(
    ("host", "is_reserved"),
    [
        ("ep-a-1.us-east-2.aws.neon.invalid", True),
        ("EP-A-1.NEON.INVALID.", True),
        ("invalid", True),
        ("ep-a-1.neon.tech", False),
        ("invalid.neon.tech", False),
        ("not-invalid", False),
    ],
)
def test_top_level_domain_invalid_is_reserved(host: str, is_reserved: bool) -> None:
    assert address_of_host(host).is_reserved is is_reserved


def test_host_name_that_starts_with_the_id_selects_the_compute() -> None:
    assert names_compute(NEON, "ep-late-frost-12345678")
    assert not names_compute("localhost", "ep-late-frost-12345678")
    assert not names_compute(NEON, "ep-late-frost-1234567")
