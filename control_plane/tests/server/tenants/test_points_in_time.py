"""The cluster that has the data of a branch at a point in time."""

from neonctl_local.server.tenants.cluster_work import Content, content_at

BRANCH = Content("br-now", changed_at=100, until=None)
SNAPSHOT = Content("snap-a", changed_at=40, until=60)


def test_branch_that_did_not_change_since_has_the_data() -> None:
    assert content_at(100, [BRANCH, SNAPSHOT]) == "br-now"
    assert content_at(500, [BRANCH, SNAPSHOT]) == "br-now"


def test_snapshot_has_the_data_from_its_last_change_until_it_was_taken() -> None:
    assert content_at(40, [BRANCH, SNAPSHOT]) == "snap-a"
    assert content_at(60, [BRANCH, SNAPSHOT]) == "snap-a"


def test_no_cluster_certainly_has_the_data_of_other_times() -> None:
    assert content_at(39, [BRANCH, SNAPSHOT]) is None
    assert content_at(61, [BRANCH, SNAPSHOT]) is None
    assert content_at(99, [BRANCH]) is None
