"""Calls from another process reach the public methods of a tenant, and nothing else."""

from collections.abc import Callable

import msgspec
import pytest

from neonctl_local import Fault, LocalControlPlane, Tenant
from pytest_neonctl_async.background_loop import BackgroundLoop
from pytest_neonctl_async.tenant_calls import ALLOWED, TenantCall, encode_result
from pytest_neonctl_async.tenant_records import TenantAdded

Call = Callable[..., object]


@pytest.fixture
def call(server_loop: BackgroundLoop, server: LocalControlPlane) -> Call:
    """Calls a method from JSON to JSON, as the control server does."""

    async def run(name: str, arguments: dict[str, object]) -> object:
        body = msgspec.json.encode({"name": name, "arguments": arguments})
        result = await msgspec.json.decode(body, type=TenantCall).run(server)
        return msgspec.json.decode(encode_result(result))

    def call(name: str, /, **arguments: object) -> object:
        return server_loop.call(run(name, arguments))

    return call


def test_allow_list_is_the_public_interface_of_a_tenant() -> None:
    public = {name for name in vars(Tenant) if not name.startswith("_")}
    assert ALLOWED.keys() == public - {"sign_in"}
    assert not ALLOWED.keys() & vars(LocalControlPlane).keys()


@pytest.mark.parametrize(
    "name", ["_state", "__init__", "__class__", "sign_in", "stop", "destroy", ""]
)
def test_name_outside_the_allow_list_is_refused(call: Call, name: str) -> None:
    with pytest.raises(ValueError, match=f"no method '{name}': expected one of .*fail_next"):
        call(name)


def test_properties_and_methods_of_both_kinds_can_be_called(
    call: Call, server: LocalControlPlane
) -> None:
    assert call("org_id") == server.org_id
    assert [call("inject", fault={"status": 503})] == call("faults")
    assert call("clear_faults") is None
    assert call("faults") == []
    user_id = call("create_user", name="Somebody", email="somebody@example.com")
    assert call("add_member", org_id=server.org_id, user_id=user_id) is None


def test_active_fault_is_encoded_with_its_count(call: Call, server: LocalControlPlane) -> None:
    fault = server.inject(Fault(status=503))
    fault.fired = 2
    [encoded] = msgspec.convert(call("faults"), list[dict[str, object]])
    assert encoded["fired"] == 2
    assert msgspec.convert(encoded["fault"], Fault) == Fault(status=503)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("fail_next", {}, "missing required field `action`"),
        ("fail_next", {"action": "create_branch", "times": "2"}, r"Expected `int`, got `str`"),
        ("fail_next", {"action": "destroy"}, "no action 'destroy'"),
        ("reset", {"hard": True}, "unknown field `hard`"),
        ("add_member", {"org_id": "o", "user_id": "u", "role": "owner"}, "Invalid enum value"),
        ("inject", {"fault": {"status": 1}}, "status is 1: expected 200 to 599"),
    ],
)
def test_arguments_are_checked_against_the_signature(
    call: Call, name: str, arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        call(name, **arguments)


def test_result_of_an_unknown_type_is_refused() -> None:
    with pytest.raises(TypeError, match="cannot encode a value of type object as JSON"):
        encode_result(object())


def test_repr_of_a_new_tenant_shows_no_key() -> None:
    assert repr(TenantAdded(3, "sesame", "user", "org")) == "<TenantAdded 3>"
