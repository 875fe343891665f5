"""Projects are found by id or by exact name. Missing ones need a region."""

import pytest

from neonctl_async.provisioning.fleet import Tenant
from neonctl_async.provisioning.fleet.projects import is_project_id, resolve
from neonctl_async.types import NewProject
from tests.provisioning.fleet.records import PROJECT_ID, project, tenant

OTHER_ID = "calm-sun-87654321"


def test_project_is_found_by_id_and_by_exact_name() -> None:
    listed = [project(), project(OTHER_ID, "acme-2")]
    found = resolve([tenant(project="acme"), tenant(project=OTHER_ID)], listed)
    assert {text: one.id for text, one in found.existing.items()} == {
        "acme": PROJECT_ID,
        OTHER_ID: OTHER_ID,
    }
    assert (found.missing, found.problems) == ({}, [])


def test_project_that_is_listed_twice_is_one_project() -> None:
    assert resolve([tenant()], [project(), project()]).existing["acme"].id == PROJECT_ID


@pytest.mark.parametrize("other_name", ["acme", PROJECT_ID])
def test_text_that_fits_more_than_one_project_is_a_problem(other_name: str) -> None:
    found = resolve([tenant(project=other_name)], [project(), project(OTHER_ID, other_name)])
    [problem] = found.problems
    assert problem == (
        f"2 projects match {other_name!r}: {OTHER_ID}, {PROJECT_ID}; expected one: use the id, or "
        "rename or delete the other"
    )
    assert found.existing == {}


def test_missing_project_with_a_region_is_new() -> None:
    found = resolve([tenant(region="aws-eu-central-1"), tenant("b-2", pg_version=16)], [])
    new = NewProject(name="acme", region_id="aws-eu-central-1", pg_version=16)
    assert (found.missing, found.problems) == ({"acme": new}, [])


@pytest.mark.parametrize(
    ("tenants", "problem"),
    [
        (
            [tenant()],
            "no project has the name 'acme': create it, or set the region of its tenants",
        ),
        (
            [tenant(project=PROJECT_ID, region="aws-us-east-2")],
            f"no project has the id {PROJECT_ID}: correct the id, or use a name",
        ),
        (
            [tenant(region="b"), tenant("b-2", region="a")],
            "the tenants of 'acme' have the region a and b: expected one",
        ),
    ],
)
def test_project_that_cannot_be_created_is_a_problem(tenants: list[Tenant], problem: str) -> None:
    assert resolve(tenants, []).problems == [problem]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PROJECT_ID, True),
        ("acme", False),
        ("late-frost", False),
        ("acme-1", False),
        ("Late-frost-12345678", False),
    ],
)
def test_only_a_generated_id_counts_as_an_id(text: str, *, expected: bool) -> None:
    assert is_project_id(text) == expected
