"""``branches.ensure`` creates a branch, or adopts the existing one after it has verified it."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from neonctl_async import (
    ConflictError,
    EndpointSettings,
    EndpointSpec,
    MismatchError,
    NeonClient,
    NotFoundError,
)
from neonctl_async.types import Branch, EnsuredBranch
from neonctl_local import Fault, LocalControlPlane
from tests.provisioning.helpers import COMPUTE, branch_names, ensure, unlocked

UPDATE = "PATCH /projects/{project_id}/branches/{branch_id}"


async def differences(neon: NeonClient, project_id: str, **settings: Any) -> tuple[str, ...]:
    """Return the differences of the existing branch from the settings."""
    with pytest.raises(MismatchError) as caught:
        await ensure(neon, project_id, **settings)
    return caught.value.differences


async def test_first_call_creates_and_the_second_one_adopts(
    neon: NeonClient, project_id: str
) -> None:
    first = await ensure(neon, project_id, endpoints=[COMPUTE], wait=True)
    assert first.created
    assert first.branch.name == "preview"
    assert [one.status for one in first.operations] == ["finished", "finished"]
    assert len(first.connection_uris) == 1
    second = await ensure(neon, project_id, endpoints=[COMPUTE], wait=True)
    assert not second.created
    assert second.branch.id == first.branch.id
    assert [one.id for one in second.endpoints] == [one.id for one in first.endpoints]
    assert second.branch.current_state == "ready"
    assert (second.operations, second.connection_uris) == ([], [])
    assert await branch_names(neon, project_id) == ["preview", "main"]


@pytest.mark.parametrize(
    ("settings", "requests"),
    [
        ({}, 1),
        ({"parent": "main"}, 1),
        ({"endpoints": [COMPUTE]}, 2),
        ({"parent": "main", "endpoints": [COMPUTE], "wait": True}, 2),
    ],
)
async def test_existing_branch_costs_at_most_two_requests(
    neon: NeonClient, project_id: str, settings: dict[str, Any], requests: int
) -> None:
    expires_at = datetime.now(UTC) + timedelta(days=7)
    await ensure(neon, project_id, endpoints=[COMPUTE], expires_at=expires_at, wait=True)
    before = neon.requests_sent
    await ensure(neon, project_id, expires_at=expires_at + timedelta(hours=1), **settings)
    assert neon.requests_sent - before == requests


async def test_new_branch_costs_two_requests(neon: NeonClient, project_id: str) -> None:
    before = neon.requests_sent
    await ensure(neon, project_id, parent="main", endpoints=[COMPUTE])
    assert neon.requests_sent - before == 2


@unlocked
async def test_calls_at_the_same_time_share_their_lists(neon: NeonClient, project_id: str) -> None:
    names = [f"tenant-{number}" for number in range(20)]

    async def ensure_all() -> list[EnsuredBranch]:
        calls = (neon.branches.ensure(project_id, name=name, endpoints=[COMPUTE]) for name in names)
        return await asyncio.gather(*calls)

    before = neon.requests_sent
    created = await ensure_all()
    assert neon.requests_sent - before == 1 + 20
    await neon.operations.wait(created)
    before = neon.requests_sent
    adopted = await ensure_all()
    assert neon.requests_sent - before == 2
    assert [one.branch.id for one in adopted] == [one.branch.id for one in created]


@pytest.mark.parametrize("kind", ["name", "id"])
async def test_parent_is_a_name_or_an_id(neon: NeonClient, project_id: str, kind: str) -> None:
    staging = (await neon.branches.create(project_id, name="staging", wait=True)).branch
    parent = staging.name if kind == "name" else staging.id
    created = await ensure(neon, project_id, parent=parent, wait=True)
    assert created.branch.parent_id == staging.id
    assert not (await ensure(neon, project_id, parent=parent)).created


async def test_missing_parent_is_an_error(neon: NeonClient, project_id: str) -> None:
    with pytest.raises(NotFoundError) as caught:
        await ensure(neon, project_id, parent="stagin")
    assert caught.value.message == (
        f"branch 'preview' needs its parent: no branch of project {project_id} has the name or the "
        "id 'stagin'; its branches: main"
    )
    assert await branch_names(neon, project_id) == ["main"]


async def test_missing_project_is_an_error(neon: NeonClient) -> None:
    with pytest.raises(NotFoundError, match="'no-such-project-12345678'"):
        await ensure(neon, "no-such-project-12345678")


async def test_branch_of_another_parent_is_not_adopted(neon: NeonClient, project_id: str) -> None:
    main = await neon.branches.default(project_id)
    staging = (await neon.branches.create(project_id, name="staging", wait=True)).branch
    await ensure(neon, project_id, parent="staging", wait=True)
    expected = (f"its parent is 'staging' ({staging.id}) instead of 'main' ({main.id})",)
    assert await differences(neon, project_id) == expected
    assert await differences(neon, project_id, parent="main") == expected


async def test_default_branch_is_never_adopted(neon: NeonClient, project_id: str) -> None:
    before = (await neon.branches.default(project_id)).id
    created = await ensure(neon, project_id, wait=True)
    await neon.branches.set_as_default(project_id, created.branch.id, wait=True)
    expected = ("it is the default branch of the project",)
    assert await differences(neon, project_id, parent="main") == expected
    assert await differences(neon, project_id, parent=before) == expected
    assert await differences(neon, project_id) == expected


async def test_error_names_the_branch_and_every_difference(
    neon: NeonClient, project_id: str
) -> None:
    created = await ensure(neon, project_id, endpoints=[COMPUTE], wait=True)
    compute = created.endpoints[0].id
    expires_at = datetime.now(UTC).replace(microsecond=0) + timedelta(days=7)
    with pytest.raises(ConflictError) as caught:
        await ensure(
            neon,
            project_id,
            protected=True,
            init_source="schema-only",
            expires_at=expires_at,
            endpoints=[
                EndpointSpec(type="read_write", autoscaling_limit_max_cu=4.0),
                EndpointSpec(type="read_only"),
            ],
        )
    error = caught.value
    assert isinstance(error, MismatchError)
    assert isinstance(error.existing, Branch)
    assert error.existing.id == created.branch.id
    assert error.differences == (
        "init_source is 'parent-data' instead of 'schema-only'",
        "protected is False instead of True",
        f"it never expires instead of at {expires_at.isoformat()}",
        f"autoscaling_limit_max_cu is 0.25 instead of 4.0 (compute {compute})",
        "it has no read_only compute",
    )
    assert str(error) == (
        f"branch 'preview' ({created.branch.id}) of project {project_id} exists, but differs from "
        f"the request: {'; '.join(error.differences)}. Nothing was changed: request the existing "
        "settings, change it in place with `update`, or use another name"
    )
    assert (error.status, error.maybe_delivered) == (409, False)


async def test_given_settings_are_verified(neon: NeonClient, project_id: str) -> None:
    spec = EndpointSpec(
        type="read_write",
        autoscaling_limit_min_cu=0.5,
        autoscaling_limit_max_cu=2,
        suspend_timeout_seconds=120,
        settings=EndpointSettings(pg_settings={"work_mem": "8MB"}),
    )
    for _ in range(2):
        await ensure(neon, project_id, protected=True, endpoints=[spec], wait=True)
    assert not (await ensure(neon, project_id, endpoints=[COMPUTE])).created


async def test_schema_only_branch_is_not_adopted_for_its_data(
    neon: NeonClient, project_id: str
) -> None:
    await ensure(neon, project_id, init_source="schema-only", wait=True)
    root, source = await differences(neon, project_id)
    assert root.startswith("it is a root branch instead of a child of 'main'")
    assert source == "init_source is 'schema-only' instead of 'parent-data'"


async def test_compute_of_an_existing_branch_is_not_created(
    neon: NeonClient, project_id: str
) -> None:
    await ensure(neon, project_id, wait=True)
    assert await differences(neon, project_id, endpoints=[COMPUTE]) == (
        "it has no read_write compute",
    )


async def test_annotation_is_written_by_the_creation_only(
    neon: NeonClient, project_id: str
) -> None:
    await ensure(neon, project_id, annotation_value={"commit": "1"}, wait=True)
    adopted = await ensure(neon, project_id, annotation_value={"commit": "2"})
    assert adopted.branch.annotation is not None
    assert adopted.branch.annotation.value == {"commit": "1"}


async def test_expiry_is_postponed_if_the_branch_would_expire_much_earlier(
    neon: NeonClient, project_id: str
) -> None:
    soon = (datetime.now(UTC) + timedelta(hours=1)).replace(microsecond=0)
    later = soon + timedelta(days=1)
    await ensure(neon, project_id, expires_at=soon, annotation_value={"team": "shop"}, wait=True)
    extended = await ensure(neon, project_id, expires_at=later)
    assert extended.branch.expires_at == later
    assert extended.branch.annotation is not None
    assert (await ensure(neon, project_id, expires_at=soon)).branch.expires_at == later
    assert (await neon.branches.get(project_id, extended.branch.id)).expires_at == later


async def test_lost_response_to_the_postponement_is_repeated(
    control_plane: LocalControlPlane, neon: NeonClient, project_id: str
) -> None:
    soon = datetime.now(UTC) + timedelta(hours=1)
    await ensure(neon, project_id, expires_at=soon, wait=True)
    for when in ("before", "after"):
        control_plane.inject(Fault(route=UPDATE, times=1, drop=True, when=when))
        soon += timedelta(hours=1)
        extended = await ensure(neon, project_id, expires_at=soon)
        assert extended.branch.expires_at == soon.replace(microsecond=0)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"name": ""}, ValueError, "name is empty: expected a name"),
        ({"name": None}, TypeError, "name is None: expected a string"),
        ({"parent": ""}, ValueError, "parent is empty: expected a name"),
        ({"wait": "conect"}, TypeError, "wait is 'conect': expected True"),
        ({"expires_at": datetime(2026, 1, 1)}, ValueError, "expected a datetime with a time zone"),  # noqa: DTZ001 - without a time zone
        ({"endpoints": "read_write"}, TypeError, "endpoints is 'read_write': expected a list"),
        ({"endpoints": [COMPUTE, COMPUTE]}, ValueError, "endpoints has 2 read_write computes"),
        ({"wait": "connect"}, ValueError, "connect"),
    ],
)
async def test_invalid_arguments_are_refused_before_any_request(
    neon: NeonClient, project_id: str, settings: Any, error: type[Exception], message: str
) -> None:
    arguments: dict[str, Any] = {"name": "preview", **settings}
    before = neon.requests_sent
    with pytest.raises(error, match=message):
        await neon.branches.ensure(project_id, **arguments)
    assert neon.requests_sent == before
