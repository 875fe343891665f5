import pytest

from neonctl_async.models.branches import BranchesPage
from neonctl_async.types import Branch, BranchCreated, BranchCreator, BranchDeleted
from tests.models.records import (
    AT_NOON,
    BRANCH,
    CONNECTION,
    NOON,
    OPERATION,
    decode,
)


def test_branch_decodes_nested_records() -> None:
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


def test_missing_lists_are_empty_and_not_shared() -> None:
    minimal = {"branch": BRANCH, "operations": [OPERATION]}
    one, other = decode(BranchCreated, minimal), decode(BranchCreated, minimal)
    assert not any([one.endpoints, one.roles, one.databases, one.connection_uris])
    assert one.endpoints is not other.endpoints


def test_deletion_response_may_be_empty() -> None:
    assert decode(BranchDeleted, {}) == BranchDeleted(branch=None, operations=[])


def test_annotations_have_the_branch_id_as_key() -> None:
    note = {"object": {"type": "branch", "id": "br-1"}, "value": {"team": "shop"}}
    page = decode(BranchesPage, {"branches": [BRANCH], "annotations": {"br-1": note}})
    assert page.annotations["br-1"].value == {"team": "shop"}


def test_connection_uri_is_the_first_of_the_response() -> None:
    content = {"branch": BRANCH, "operations": [OPERATION]}
    created = decode(BranchCreated, content | {"connection_uris": [CONNECTION]})
    assert created.connection_uri.reveal() == CONNECTION["connection_uri"]


def test_missing_connection_uri_raises_lookup_error() -> None:
    created = decode(BranchCreated, {"branch": BRANCH, "operations": [OPERATION]})
    with pytest.raises(
        LookupError, match=r"br-1, because it has no compute: create it with endpoints="
    ):
        _ = created.connection_uri
