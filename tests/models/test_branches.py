import pytest

from neonctl_async.models.branches import BranchesPage
from neonctl_async.types import Branch, BranchCreated, BranchCreator, BranchDeleted
from tests.models.answers import (
    AT_NOON,
    BRANCH,
    CONNECTION,
    DATABASE,
    ENDPOINT,
    NOON,
    OPERATION,
    ROLE,
    decode,
)


def test_a_branch_with_all_that_is_nested_in_it() -> None:
    branch = decode(
        Branch,
        {
            **BRANCH,
            "default": True,
            "parent_timestamp": NOON,
            "created_by": {"name": "Ada"},
            "restricted_actions": [{"name": "delete", "reason": "it is the default branch"}],
            "recovery": {"deleted_at": NOON, "recoverable_until": NOON},
        },
    )
    assert branch.default
    assert not branch.protected
    assert branch.parent_timestamp == AT_NOON
    assert branch.created_by == BranchCreator(name="Ada")
    assert [action.name for action in branch.restricted_actions or []] == ["delete"]
    assert branch.recovery is not None
    assert branch.recovery.recoverable_until == AT_NOON


def test_the_state_of_a_branch_is_whatever_the_platform_says() -> None:
    assert decode(Branch, {**BRANCH, "current_state": "dreaming"}).current_state == "dreaming"


def test_a_created_branch_hides_every_secret() -> None:
    created = decode(
        BranchCreated,
        {
            "branch": BRANCH,
            "operations": [OPERATION],
            "endpoints": [ENDPOINT],
            "roles": [{**ROLE, "password": "hunter2"}],
            "databases": [DATABASE],
            "connection_uris": [CONNECTION],
        },
    )
    assert "hunter2" not in repr(created)
    assert created.roles[0].password is not None
    assert created.roles[0].password.reveal() == "hunter2"
    assert "hunter2" in created.connection_uris[0].connection_uri.reveal()


def test_lists_left_out_are_empty_and_not_shared() -> None:
    least = {"branch": BRANCH, "operations": [OPERATION]}
    one, other = decode(BranchCreated, least), decode(BranchCreated, least)
    assert not any([one.endpoints, one.roles, one.databases, one.connection_uris])
    assert one.endpoints is not other.endpoints


def test_a_deletion_may_say_nothing() -> None:
    assert decode(BranchDeleted, {}) == BranchDeleted(branch=None, operations=[])


def test_annotations_are_keyed_by_branch() -> None:
    note = {"object": {"type": "branch", "id": "br-1"}, "value": {"team": "shop"}}
    page = decode(BranchesPage, {"branches": [BRANCH], "annotations": {"br-1": note}})
    assert page.annotations["br-1"].value == {"team": "shop"}


def test_a_created_branch_knows_its_connection_uri() -> None:
    shown = {"branch": BRANCH, "operations": [OPERATION]}
    created = decode(BranchCreated, shown | {"connection_uris": [CONNECTION]})
    assert created.connection_uri.reveal() == CONNECTION["connection_uri"]


def test_a_branch_made_without_a_compute_says_what_a_connection_takes() -> None:
    created = decode(BranchCreated, {"branch": BRANCH, "operations": [OPERATION]})
    with pytest.raises(LookupError, match=r"br-1: it takes a compute, .* endpoints="):
        _ = created.connection_uri
