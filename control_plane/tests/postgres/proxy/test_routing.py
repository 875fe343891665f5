"""The compute of a client: from its options, its TLS server name or its password, as on Neon."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neonctl_local.postgres.proxy.errors import ComputeRefusedError
from neonctl_local.postgres.proxy.routing import (
    MISSING_ENDPOINT,
    Compute,
    find_endpoint,
    parse_password,
    server_startup,
)
from neonctl_local.postgres.proxy.startup import StartupMessage

FROST = "ep-late-frost-12345678"


def startup(options: str | None = None) -> StartupMessage:
    parameters = {b"user": b"me", b"database": b"neondb"}
    if options is not None:
        parameters[b"options"] = options.encode()
    return StartupMessage(3 << 16, parameters)


@pytest.mark.fact("connections-6")
@pytest.mark.parametrize(
    "options",
    [
        f"endpoint={FROST}",
        f"project={FROST}",
        f"endpoint={FROST}-pooler",
        f"  endpoint={FROST}\t",
        f"-c geqo=off endpoint={FROST}",
        f"-ckey=a\\ b project={FROST} --work_mem=4MB",
    ],
)
def test_options_have_the_endpoint(options: str) -> None:
    expected = Compute(FROST, options.endswith("-pooler"))
    assert find_endpoint(startup(options), None) == expected


@pytest.mark.parametrize(
    "options",
    [
        None,
        "",
        "-c geqo=off",
        f"-c\\ endpoint={FROST}",
        f"xendpoint={FROST}",
        "endpoint=ep-one endpoint=ep-two",
        "endpoint=ep-one project=ep-one",
    ],
)
def test_options_without_one_endpoint_are_ignored(options: str | None) -> None:
    assert find_endpoint(startup(options), None) is None


@pytest.mark.parametrize(
    "name", [f"{FROST}.neon.invalid", f"{FROST}-pooler.eu.neon.invalid", f"{FROST.upper()}.local"]
)
def test_first_part_of_the_server_name_is_the_endpoint(name: str) -> None:
    assert find_endpoint(startup(), name) == Compute(FROST, "-pooler" in name)


@pytest.mark.parametrize("name", [None, "", "localhost", "db.example.com", FROST, ".neon.invalid"])
def test_other_server_names_have_no_endpoint(name: str | None) -> None:
    assert find_endpoint(startup(), name) is None
    assert find_endpoint(startup(f"endpoint={FROST}"), name) == Compute(FROST, pooled=False)


@pytest.mark.parametrize(
    ("name", "endpoint_id"),
    [
        ("mistyped.db.test", "mistyped"),
        ("localhost.db.test", "localhost"),
        ("br-frost.elsewhere.test", "br-frost"),
        ("api.db.test", None),
        ("more.parts.db.test", None),
        ("db.test", None),
    ],
)
def test_every_host_in_a_domain_of_computes_is_one(name: str, endpoint_id: str | None) -> None:
    found = find_endpoint(startup(), name, ["neon.invalid", "db.test"])
    assert (found and found.endpoint_id) == endpoint_id


@pytest.mark.parametrize(
    ("options", "endpoint_id"),
    [
        ("neon_timestamp:2026-01-01T00:00:00Z", "br-frost timestamp:2026-01-01T00:00:00Z"),
        ("-c geqo=off neon_lsn:0/1A2B3C", "br-frost lsn:0/1A2B3C"),
        ("neon_lsn:0/1 neon_timestamp:x", "br-frost lsn:0/1 timestamp:x"),
        ("neon_endpoint_type:read_only neon_lsn: xneon_lsn:0/1 neon_lsn=0/1", "br-frost"),
    ],
)
def test_options_have_the_point_in_time(options: str, endpoint_id: str) -> None:
    expected = Compute(endpoint_id, pooled=False)
    assert find_endpoint(startup(options), "br-frost.db.test") == expected
    assert find_endpoint(startup(f"endpoint=br-frost {options}"), None) == expected
    assert parse_password(b"endpoint=br-frost;secret", startup(options)).compute == expected


def test_past_of_a_branch_has_no_pooler() -> None:
    found = find_endpoint(startup("neon_lsn:0/1"), f"{FROST}-pooler.db.test")
    assert found == Compute(f"{FROST} lsn:0/1", pooled=False)


def test_client_has_to_name_a_user() -> None:
    with pytest.raises(ComputeRefusedError, match="Parameter 'user' is missing in startup packet"):
        find_endpoint(StartupMessage(3 << 16, {}), f"{FROST}.db.test")


def test_server_name_and_options_may_name_the_same_endpoint() -> None:
    found = find_endpoint(startup(f"endpoint={FROST}"), f"{FROST}.neon.invalid")
    assert found == Compute(FROST, pooled=False)


@pytest.mark.parametrize("domain", ["ep-other", f"{FROST}-pooler"])
def test_server_name_and_options_may_not_contradict(domain: str) -> None:
    with pytest.raises(ComputeRefusedError) as caught:
        find_endpoint(startup(f"endpoint={FROST}"), f"{domain}.neon.invalid")
    assert caught.value.message == (
        f"Inconsistent project name inferred from SNI ('{domain}') and project option ('{FROST}')."
    )


@pytest.mark.parametrize("name", ["ep_frost", "ep-frost/..", "ep.frost", "ep-frost;x", ""])
def test_malformed_endpoint_is_refused(name: str) -> None:
    expected = r"Project name \('.*'\) must contain only alphanumeric characters and hyphen\."
    with pytest.raises(ComputeRefusedError, match=expected):
        find_endpoint(startup(f"endpoint={name}"), None)


@pytest.mark.fact("connections-5")
@pytest.mark.parametrize("option", ["endpoint", "project"])
@pytest.mark.parametrize(
    ("rest", "password"),
    [(";pass;word$", b"pass;word$"), ("$pass$word", b"pass$word"), (";", b""), ("-pooler;x", b"x")],
)
def test_password_has_the_endpoint(option: str, rest: str, password: bytes) -> None:
    assert parse_password(f"{option}={FROST}{rest}".encode(), startup()) == (
        Compute(FROST, "-pooler" in rest),
        password,
    )


@pytest.mark.parametrize("password", [b"", b"secret", b"endpoint=ep-frost", b"xendpoint=ep;y"])
def test_password_without_an_endpoint_is_refused(password: bytes) -> None:
    with pytest.raises(ComputeRefusedError) as caught:
        parse_password(password, startup())
    assert caught.value.message == MISSING_ENDPOINT


def test_password_that_contains_a_semicolon_needs_a_semicolon_as_separator() -> None:
    with pytest.raises(ComputeRefusedError, match="alphanumeric"):
        parse_password(f"endpoint={FROST}$pass;word".encode(), startup())


def test_repr_shows_no_password() -> None:
    assert "secret" not in repr(parse_password(f"endpoint={FROST};secret".encode(), startup()))


@pytest.mark.parametrize(
    ("options", "passed_on"),
    [
        (f"endpoint={FROST}", None),
        (f"-c geqo=off endpoint={FROST}", "-c geqo=off"),
        (f"project={FROST} -c a=b\\ c --x=\\\\", "-c a=b\\ c --x=\\\\"),
        (None, None),
        ("-c geqo=off", "-c geqo=off"),
        ("neon_timestamp:now -c geqo=off neon_endpoint_type:read_only", "-c geqo=off"),
    ],
)
def test_server_receives_the_other_options(options: str | None, passed_on: str | None) -> None:
    message = server_startup(startup(options), read_only=False)
    assert message == startup(passed_on)


def test_sessions_of_a_read_only_compute_are_read_only() -> None:
    message = server_startup(startup(f"endpoint={FROST} -c geqo=off"), read_only=True)
    assert message == startup("-c geqo=off -c default_transaction_read_only=on")


@given(st.text(alphabet="a \\\t=-c", max_size=30))
def test_options_keep_their_words(text: str) -> None:
    options = text.encode()
    message = startup(f"endpoint=ep-x {text}")
    assert find_endpoint(message, None) == Compute("ep-x", pooled=False)
    passed_on = server_startup(message, read_only=False).parameters.get(b"options", b"")
    assert passed_on.split() == options.split()
