"""The limits of request bodies."""

import pytest

from control_plane.tests.client import Client


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"branch": {"name": ""}}, "branch.name"),
        ({"branch": {"expires_at": "tomorrow"}}, "branch.expires_at"),
        ({"branch": {"parent_lsn": "1A2B3C"}}, "parent_lsn (expected an LSN"),
        ({"branch": {"expires_at": "2025-01-01T00:00:00Z"}}, "expires_at"),
        ({"endpoints": [{"provisioner": "k8s-pod"}]}, "endpoints[0].type"),
        ({"endpoints": [{"type": "write_only"}]}, "endpoints[0].type"),
        ({"endpoints": [{"type": "read_write", "suspend_timeout_seconds": 604801}]}, "suspend"),
        ({"endpoints": [{"type": "read_only"}] * 101}, "endpoints"),
        ({"endpoints": [{"type": "read_write", "provisioner": ""}]}, "provisioner"),
        (["branch"], "body"),
        ({"branch": {"parent_timestamp": "0001-01-01T00:00:00+14:00"}}, "parent_timestamp"),
        ({"branch": {"parent_timestamp": "9999-12-31T23:59:59-14:00"}}, "parent_timestamp"),
        ({"branch": {"expires_at": "0001-01-01T00:00:00+14:00"}}, "expires_at"),
        ({"branch": {"expires_at": "9999-12-31T23:59:59-14:00"}}, "expires_at"),
    ],
)
async def test_error_for_an_invalid_branch_names_the_field(
    api: Client, project_id: str, body: object, field: str
) -> None:
    await api.expect_error(400, field, "POST", f"/projects/{project_id}/branches", body)


@pytest.mark.fact("projects-2")
async def test_name_of_a_project_has_64_characters_at_most(api: Client) -> None:
    created = await api.project(name="x" * 64)
    path = f"/projects/{created['project']['id']}"
    await api.expect_error(400, "project.name", "PATCH", path, {"project": {"name": "x" * 65}})


@pytest.mark.fact(
    "computes-4", "computes-5", "computes-6", "computes-7", "computes-8", "computes-9"
)
@pytest.mark.parametrize(
    ("minimum", "maximum", "words"),
    [
        (0.25, 8, ""),
        (8, 16, ""),
        (56, 56, ""),
        (18, 18, ""),
        (0.3, 1, "autoscaling_limit_min_cu: 0.3 is no size"),
        (17, 17, "autoscaling_limit_min_cu: 17 is no size"),
        (1, 1.5, "autoscaling_limit_max_cu: 1.5 is no size"),
        (58, 58, "58 is no size"),
        (2, 1, "2 is more than"),
        (0.25, 9, "0.25 to 9: use 1 or more"),
        (10, 18, "sizes above 16 are not scaled"),
    ],
)
async def test_sizes_are_those_that_neon_has(
    api: Client, project_id: str, minimum: float, maximum: float, words: str
) -> None:
    [endpoint] = (await api.get(f"/projects/{project_id}/endpoints"))["endpoints"]
    sizes = {"autoscaling_limit_min_cu": minimum, "autoscaling_limit_max_cu": maximum}
    requests: list[tuple[str, str, object]] = [
        ("PATCH", f"/projects/{project_id}/endpoints/{endpoint['id']}", {"endpoint": sizes}),
        ("PATCH", f"/projects/{project_id}", {"project": {"default_endpoint_settings": sizes}}),
        ("POST", "/projects", {"project": sizes}),
        ("POST", "/projects", {"project": {"default_endpoint_settings": sizes}}),
    ]
    for request in requests:
        if words:
            await api.expect_error(400, words, *request)
        else:
            await api.request(*request)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"name": ""}, "project.name"),
        ({"name": "x" * 65}, "project.name"),
        ({"branch": {"database_name": "x" * 64}}, "project.branch.database_name"),
        ({"branch": {"role_name": "x" * 64}}, "project.branch.role_name"),
        ({"pg_version": 13}, "project.pg_version"),
        ({"history_retention_seconds": -1}, "project.history_retention_seconds"),
        ({"autoscaling_limit_min_cu": 0.1}, "project.autoscaling_limit_min_cu"),
        ({"autoscaling_limit_min_cu": 2, "autoscaling_limit_max_cu": 1}, "autoscaling_limit_min"),
        ({"autoscaling_limit_max_cu": 58}, "autoscaling_limit_max_cu"),
        ({"autoscaling_limit_min_cu": 1e308}, "autoscaling_limit_min_cu"),
        ({"default_endpoint_settings": {"autoscaling_limit_min_cu": 0.3}}, "0.3 is no size"),
        ({"branch": {"name": 1}}, "project.branch.name"),
        ({"default_endpoint_settings": {"suspend_timeout_seconds": -2}}, "default_endpoint"),
    ],
)
async def test_error_for_an_invalid_project_names_the_field(
    api: Client, spec: object, field: str
) -> None:
    await api.expect_error(400, field, "POST", "/projects", {"project": spec})
    assert await api.project_names() == []
