"""Every difference between an existing object and the requested one is found."""

from collections.abc import Sequence
from datetime import timedelta
from itertools import permutations
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import asdict, replace

from neonctl_async import EndpointSettings, EndpointSpec
from neonctl_async.provisioning.differences import (
    NOT_COMPARED,
    changeable_differences,
    compute_differences,
    expires_too_early,
    fixed_differences,
    match_computes,
)
from neonctl_async.types import Branch, Endpoint, EnsureSettings, PreloadLibraries
from tests.models.records import BRANCH, ENDPOINT, decode
from tests.support.records import EPOCH

MAIN = replace(decode(Branch, BRANCH), id="br-main", name="main", default=True)
FOUND = replace(decode(Branch, BRANCH), id="br-found", name="preview", parent_id="br-main")
BRANCHES = {branch.id: branch for branch in (MAIN, FOUND)}

sizes = st.sampled_from([0.25, 1.0, 2.0])
types = st.sampled_from(["read_write", "read_only"])
specs = st.builds(
    EndpointSpec,
    type=types,
    autoscaling_limit_min_cu=st.just(UNSET) | sizes,
    autoscaling_limit_max_cu=st.just(UNSET) | sizes,
)


def differences(found: Branch, parent: Branch | None = MAIN, **wanted: object) -> list[str]:
    settings = cast("EnsureSettings", wanted)
    fixed = fixed_differences(found, parent, settings, BRANCHES)
    return [*fixed, *changeable_differences(found, settings).values()]


def compute(id: str = "ep-1", type: str = "read_write", **fields: object) -> Endpoint:
    return decode(Endpoint, {**ENDPOINT, "id": id, "type": type, **fields})


@st.composite
def computes(draw: st.DrawFn) -> list[Endpoint]:
    return [
        compute(
            f"ep-{number}",
            draw(types),
            autoscaling_limit_min_cu=draw(sizes),
            autoscaling_limit_max_cu=draw(sizes),
        )
        for number in range(draw(st.integers(0, 4)))
    ]


def fits(found: Endpoint, spec: EndpointSpec) -> bool:
    return not compute_differences(found, asdict(spec))


def can_be_matched(found: Sequence[Endpoint], wanted: Sequence[EndpointSpec]) -> bool:
    return any(all(map(fits, chosen, wanted)) for chosen in permutations(found, len(wanted)))


def test_child_of_the_requested_parent_does_not_differ() -> None:
    assert differences(FOUND) == []


@pytest.mark.parametrize(
    ("found", "difference"),
    [
        ({"default": True}, "it is the default branch of the project"),
        ({"primary": True}, "it is the default branch of the project"),
        (
            {"parent_id": None},
            "it is a root branch instead of a child of 'main' (br-main)",
        ),
        (
            {"parent_id": "br-gone"},
            "its parent is br-gone instead of 'main' (br-main)",
        ),
        ({"init_source": "schema-only"}, "init_source is 'schema-only' instead of 'parent-data'"),
    ],
)
def test_differences_without_a_given_setting(found: dict[str, object], difference: str) -> None:
    assert differences(replace(FOUND, **found)) == [difference]


def test_branch_is_no_child_of_itself() -> None:
    assert differences(FOUND, parent=FOUND) == [
        "its parent is 'main' (br-main) instead of 'preview' (br-found)"
    ]


def test_project_without_a_default_branch_has_no_default_parent() -> None:
    root = replace(FOUND, parent_id=None)
    assert differences(root, parent=None) == []


def test_schema_only_branch_may_be_a_root_branch() -> None:
    found = replace(FOUND, init_source="schema-only", parent_id=None)
    assert differences(found, init_source="schema-only") == []
    assert differences(replace(found, parent_id="br-gone"), init_source="schema-only") != []


@given(
    is_found_protected=st.booleans(),
    protected=st.just(UNSET) | st.booleans(),
    init_source=st.sampled_from([None, "parent-data", "schema-only"]),
    wanted_source=st.sampled_from([UNSET, "parent-data", "schema-only"]),
)
def test_branch_is_adopted_exactly_if_all_given_settings_agree(
    is_found_protected: bool, protected: object, init_source: object, wanted_source: object
) -> None:
    found = replace(FOUND, protected=is_found_protected, init_source=init_source)
    differs = (
        protected not in (UNSET, is_found_protected),
        (wanted_source or "parent-data") != (init_source or "parent-data"),
    )
    found_differences = differences(found, protected=protected, init_source=wanted_source)
    assert len(found_differences) == sum(differs)


def test_empty_setting_does_not_differ_from_itself() -> None:
    assert differences(replace(FOUND, init_source=""), init_source="") == []


def test_every_setting_of_a_branch_is_compared() -> None:
    assert EnsureSettings.__optional_keys__ - {*Branch.__struct_fields__} == NOT_COMPARED


@given(found=st.integers(0, 100), wanted=st.integers(-10, 100))
def test_expiry_is_too_early_by_more_than_a_tenth_of_the_lifetime(found: int, wanted: int) -> None:
    hours = timedelta(hours=1)
    is_early = expires_too_early(EPOCH + found * hours, EPOCH + wanted * hours, EPOCH)
    assert is_early == (found < wanted - max(wanted, 0) / 10)


def test_branch_without_an_expiry_or_a_requested_one_never_expires_too_early() -> None:
    assert not expires_too_early(None, EPOCH, EPOCH)
    assert not expires_too_early(EPOCH, UNSET, EPOCH)


@given(found=computes(), wanted=st.lists(specs, max_size=3))
def test_computes_are_matched_exactly_if_it_is_possible(
    found: list[Endpoint], wanted: list[EndpointSpec]
) -> None:
    matching, problems = match_computes(found, wanted)
    assert bool(problems) != can_be_matched(found, wanted)
    if not problems:
        assert len({one.id for one in matching}) == len(wanted)
        assert all(map(fits, matching, wanted))


def test_specific_compute_is_not_taken_by_a_vague_one() -> None:
    small, large = (
        compute(f"ep-{size}", "read_only", autoscaling_limit_max_cu=size) for size in (1.0, 2.0)
    )
    vague = EndpointSpec(type="read_only")
    specific = EndpointSpec(type="read_only", autoscaling_limit_max_cu=1)
    assert match_computes([small, large], [vague, specific]) == ([large, small], [])


def test_missing_compute_and_the_closest_one_are_named() -> None:
    found = [
        compute("ep-far", "read_only", autoscaling_limit_min_cu=2, autoscaling_limit_max_cu=2),
        compute("ep-near", "read_only", autoscaling_limit_min_cu=1, autoscaling_limit_max_cu=2),
    ]
    spec = EndpointSpec(type="read_only", autoscaling_limit_min_cu=1, autoscaling_limit_max_cu=1)
    assert match_computes(found, [spec, EndpointSpec(type="read_write")]) == (
        [],
        [
            "autoscaling_limit_max_cu is 2.0 instead of 1 (compute ep-near)",
            "it has no read_write compute",
        ],
    )
    assert match_computes(found, [EndpointSpec(type="read_only")] * 3)[1] == [
        "it has no further read_only compute"
    ]


def test_only_given_settings_of_a_compute_are_compared() -> None:
    found = compute(
        suspend_timeout_seconds=300,
        settings={
            "pg_settings": {"work_mem": "4MB", "max_connections": "100"},
            "preload_libraries": {"use_defaults": True, "enabled_libraries": ["b", "a"]},
        },
    )
    agreed = EndpointSettings(
        pg_settings={"work_mem": "4MB"},
        preload_libraries=PreloadLibraries(use_defaults=True, enabled_libraries=["a", "b"]),
    )
    assert fits(found, EndpointSpec(type="read_write", settings=agreed))
    differing = EndpointSettings(
        pg_settings={"work_mem": "8MB", "jit": "off"},
        pgbouncer_settings={"pool_mode": "session"},
        preload_libraries=PreloadLibraries(use_defaults=False, enabled_libraries=["a"]),
    )
    wanted = EndpointSpec(type="read_write", settings=differing, suspend_timeout_seconds=0)
    assert compute_differences(found, asdict(wanted)) == [
        f"{difference} (compute ep-1)"
        for difference in (
            "pg_settings['work_mem'] is '4MB' instead of '8MB'",
            "pg_settings['jit'] is not set instead of 'off'",
            "pgbouncer_settings['pool_mode'] is not set instead of 'session'",
            "use_defaults is True instead of False",
            "enabled_libraries is ['b', 'a'] instead of ['a']",
            "suspend_timeout_seconds is 300 instead of 0",
        )
    ]


def test_compute_without_settings_lacks_the_given_ones() -> None:
    libraries = EndpointSettings(preload_libraries=PreloadLibraries(enabled_libraries=["a"]))
    wanted = EndpointSpec(type="read_write", settings=libraries, provisioner="k8s-pod")
    assert compute_differences(compute(), asdict(wanted)) == [
        "enabled_libraries is [] instead of ['a'] (compute ep-1)",
        "provisioner is not set instead of 'k8s-pod' (compute ep-1)",
    ]
