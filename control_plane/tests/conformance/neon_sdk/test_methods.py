"""Every method of Neon's SDK, ``@neon/sdk`` 6.1.2, on the local control plane."""

import asyncio
from pathlib import Path
from typing import TypeAlias

import msgspec
import pytest

from neonctl_local import Durations, LocalControlPlane
from tests.contract.node import NEON_SDK, copy_programs, run_on

pytestmark = pytest.mark.conformance

NOT_SERVED = (
    "aiGateway.",
    "functions.",
    "logs.",
    "storage.",
    "triggers.",
)
"""The groups whose services the local control plane does not offer."""
SERVED = "functions.customDomains."
"""The group within these that the local control plane serves."""


class Refusal(msgspec.Struct):
    """The status and the message of an error."""

    status: int
    message: str


Outcomes: TypeAlias = dict[str, Refusal | None]


def is_not_served(name: str) -> bool:
    return name.startswith(NOT_SERVED) and not name.startswith(SERVED)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the programs find the SDK."""
    folder = tmp_path_factory.mktemp("sdk")
    for programs in (NEON_SDK, Path(__file__).parent):
        copy_programs(programs, folder)
    return folder


@pytest.fixture(scope="session")
def outcomes(folder: Path) -> Outcomes:
    """The outcome of a call of every method."""
    return msgspec.convert(asyncio.run(output_of(folder, "calls.mjs")), Outcomes)


@pytest.fixture(scope="session")
def raw(folder: Path) -> dict[str, Refusal]:
    """The response to a call of every raw function, with ids that do not exist."""
    return msgspec.convert(asyncio.run(output_of(folder, "raw.mjs")), dict[str, Refusal])


@pytest.fixture(scope="session")
def methods(folder: Path) -> list[str]:
    """The names of all methods."""
    return msgspec.convert(asyncio.run(output_of(folder, "names.mjs")), list[str])


async def output_of(folder: Path, program: str) -> object:
    async with LocalControlPlane(durations=Durations(default=0.0)) as control_plane:
        return await run_on(
            control_plane,
            "unused",
            folder,
            program,
            NEON_ORG_ID=control_plane.org_id,
            NEON_OTHER_ORG_ID=await control_plane.create_organization("other"),
        )


def test_every_method_is_called(outcomes: Outcomes, methods: list[str]) -> None:
    assert sorted(outcomes) == sorted(methods)


def test_method_works_unless_its_service_is_not_offered(outcomes: Outcomes) -> None:
    assert {
        name: refusal
        for name, refusal in outcomes.items()
        if refusal is not None and not is_not_served(name)
    } == {}


def test_service_that_is_not_offered_is_a_501_with_the_endpoint(outcomes: Outcomes) -> None:
    refused = {name for name in outcomes if is_not_served(name)}
    for name in sorted(refused):
        refusal = outcomes[name]
        assert refusal is not None, name
        assert refusal.status == 501, (name, refusal)
        method, _, path = refusal.message.partition(" is not available")[0].partition(" ")
        assert method in {"GET", "POST", "PATCH", "PUT", "DELETE"}, (name, refusal)
        assert path.startswith("/"), (name, refusal)


def test_every_endpoint_of_the_sdk_is_served_or_a_501(raw: dict[str, Refusal]) -> None:
    assert len(raw) > 170
    for name, refusal in raw.items():
        assert refusal.status in {200, 400, 404, 501}, (name, refusal)
        assert "there is no path" not in refusal.message, (name, refusal)
