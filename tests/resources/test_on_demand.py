import subprocess
import sys
from functools import cached_property

import pytest

from neonctl_async import NeonClient
from neonctl_async.resources.base import Resource
from neonctl_async.resources.on_demand import OnDemand

SERVICES = [name for name, value in vars(OnDemand).items() if isinstance(value, cached_property)]


@pytest.mark.parametrize("name", SERVICES)
def test_service_of_a_client_is_always_the_same_object(name: str) -> None:
    neon = NeonClient("key")
    service = getattr(neon, name)
    assert isinstance(service, Resource)
    assert type(service).__module__ == f"neonctl_async.resources.services.{name}"
    assert getattr(neon, name) is service
    assert getattr(NeonClient("key"), name) is not service


@pytest.mark.process
def test_client_imports_a_service_when_it_is_first_used() -> None:
    program = (
        "import sys; from neonctl_async import NeonClient; neon = NeonClient('key'); "
        "name = 'neonctl_async.resources.services.logs'; "
        "assert name not in sys.modules; neon.logs; assert name in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.process
@pytest.mark.parametrize(
    "module", ["statistics", "anyio.streams.tls", "neonctl_async.transport.shared.account"]
)
def test_client_imports_no_slow_module_that_few_programs_need(module: str) -> None:
    program = (
        f"import sys; from neonctl_async import NeonClient; assert {module!r} not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
