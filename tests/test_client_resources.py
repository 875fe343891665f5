import inspect
import re
import subprocess
import sys
from importlib.metadata import version
from unittest.mock import Mock

import pytest

from neonctl_async import NeonClient
from neonctl_async.client import RESOURCES
from neonctl_async.resources.base import Resource


@pytest.mark.parametrize("name", RESOURCES)
def test_resource_of_a_client_is_always_the_same_object(name: str) -> None:
    neon = NeonClient("key")
    resource = getattr(neon, name)
    assert isinstance(resource, Resource)
    assert type(resource).__name__ == inspect.get_annotations(NeonClient)[name]
    assert getattr(neon, name) is resource
    assert getattr(NeonClient("key"), name) is not resource


def test_every_resource_that_the_types_promise_can_be_imported() -> None:
    assert inspect.get_annotations(NeonClient).keys() == {*RESOURCES}


def test_client_lists_its_resources_before_their_first_use() -> None:
    assert {*RESOURCES} <= set(dir(NeonClient("key")))
    assert {*RESOURCES} <= set(dir(NeonClient))


@pytest.mark.process
def test_unknown_attribute_of_a_client_is_an_attribute_error_that_suggests_a_name() -> None:
    program = "from neonctl_async import NeonClient; NeonClient('key').role"
    # Before CPython 3.12, the interpreter computes suggestions, and the module traceback does not.
    run = subprocess.run(
        [sys.executable, "-c", program], stderr=subprocess.PIPE, text=True, check=False
    )
    assert run.returncode == 1
    # CPython 3.15 writes '.roles'.
    assert re.search(r"'NeonClient' object has no attribute 'role'\. .*roles'", run.stderr)


def test_error_of_a_property_of_a_subclass_names_the_attribute_that_is_missing() -> None:
    class Client(NeonClient):
        @property
        def team(self) -> object:
            return self.tag  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType] - the mistake that this test makes

    with pytest.raises(AttributeError, match="'Client' object has no attribute 'tag'"):
        Client("key").team  # noqa: B018 - the property raises


@pytest.mark.parametrize("name", RESOURCES)
def test_mock_with_the_specification_of_a_client_has_its_resources(name: str) -> None:
    getattr(Mock(spec=NeonClient), name).method()
    with pytest.raises(AttributeError, match="cluster"):
        Mock(spec=NeonClient).cluster  # noqa: B018 - the attribute raises


def test_client_that_failed_to_initialize_has_no_resources() -> None:
    neon = NeonClient.__new__(NeonClient)
    with pytest.raises(AttributeError, match="_runner"):
        neon.roles  # noqa: B018 - the attribute raises


@pytest.mark.process
def test_client_imports_a_resource_when_it_is_first_used() -> None:
    program = (
        "import sys; from neonctl_async import NeonClient; neon = NeonClient('key'); "
        "name = 'neonctl_async.resources.services.logs'; "
        "assert name not in sys.modules; neon.logs; assert name in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


ANYIO = [int(part) for part in version("anyio").split(".")[:2]]


@pytest.mark.process
def test_client_imports_no_slow_module_that_few_programs_need() -> None:
    slow = {
        "statistics",
        *({"anyio.streams.tls"} if ANYIO >= [4, 15] else ()),  # older versions import it themselves
        "neonctl_async.connections.connector",
        "neonctl_async.provisioning.ephemeral",
        "neonctl_async.models.users",
        "neonctl_async.transport.shared.account",
        "neonctl_async.waiting.states.waits",
    }
    program = f"import sys; from neonctl_async import NeonClient; print({slow} & {{*sys.modules}})"
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "set()\n"
