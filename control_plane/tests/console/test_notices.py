"""Notices about changes: what was done, and which operations started."""

from neonctl_local.console.notices import sentence, started
from neonctl_local.console.records import StartedOperation


def test_names_are_escaped_and_isolated() -> None:
    assert sentence("Branch {} created.", "<b>{}") == ("Branch <bdi>&lt;b&gt;{}</bdi> created.")


def test_operations_are_named_counted_and_linked() -> None:
    actions = ["suspend_compute", "suspend_compute", "create_branch"]
    operations = [StartedOperation(action, action) for action in actions]
    notice = started(sentence("Done."), "late-frost-1", "br-1", operations)
    assert notice == (
        "Done. Started: Suspend compute (2), Create branch. "
        '<a href="/console/projects/late-frost-1/operations?branch=br-1">'
        "Watch the operations</a>."
    )


def test_change_without_operations_has_no_link() -> None:
    assert started(sentence("Done."), "late-frost-1", "br-1", []) == "Done."
