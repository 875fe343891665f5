import msgspec

from neonctl_async import EndpointSettings, EndpointSpec
from neonctl_async.types import Endpoint, EndpointState, EndpointType, PreloadLibraries
from tests.models.records import AT_NOON, ENDPOINT, NOON, decode


def test_endpoint_decodes_current_fields() -> None:
    more = {
        "autoscaling_limit_min_cu": 0.25,
        "autoscaling_limit_max_cu": 2,
        "pending_state": "active",
        "suspend_timeout_seconds": -1,
        "last_active": NOON,
        "settings": {"pg_settings": {"work_mem": "8MB"}},
    }
    endpoint = decode(Endpoint, {**ENDPOINT, **more})
    assert endpoint.type is EndpointType.READ_WRITE
    assert endpoint.current_state is EndpointState.INIT
    assert endpoint.pending_state is EndpointState.ACTIVE
    assert (endpoint.autoscaling_limit_min_cu, endpoint.autoscaling_limit_max_cu) == (0.25, 2.0)
    assert endpoint.suspend_timeout_seconds == -1
    assert endpoint.last_active == AT_NOON
    assert endpoint.settings == EndpointSettings(pg_settings={"work_mem": "8MB"})


def test_unset_fields_are_not_sent() -> None:
    assert msgspec.to_builtins(EndpointSpec(type=EndpointType.READ_ONLY)) == {"type": "read_only"}
    spec = EndpointSpec(
        type="read_write",
        autoscaling_limit_min_cu=0.25,
        suspend_timeout_seconds=0,
        settings=EndpointSettings(preload_libraries=PreloadLibraries(use_defaults=False)),
    )
    assert msgspec.to_builtins(spec) == {
        "type": "read_write",
        "autoscaling_limit_min_cu": 0.25,
        "suspend_timeout_seconds": 0,
        "settings": {"preload_libraries": {"use_defaults": False}},
    }
