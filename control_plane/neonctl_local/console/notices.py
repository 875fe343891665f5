"""Notices about changes: what was done, and which operations started."""

from collections import Counter
from collections.abc import Sequence

from markupsafe import Markup, escape

from neonctl_local.console.labels import operation_name
from neonctl_local.console.records import StartedOperation
from neonctl_local.server.application import CONSOLE_PATH


def sentence(text: str, *names: str) -> Markup:
    """Return a sentence in which each ``{}`` is replaced by a name, as HTML.

    Each name is isolated, because it may be written from right to left.
    """
    return escape(text).format(*(Markup("<bdi>{}</bdi>").format(name) for name in names))


def started(
    done: Markup, project_id: str, branch_id: str, operations: Sequence[StartedOperation]
) -> Markup:
    """Add the operations that a change started, with a link to the list of operations.

    An empty ``branch_id`` links to the operations of all branches.
    """
    if not operations:
        return done
    counts = Counter(operation.action for operation in operations)
    names = ", ".join(
        operation_name(action) if count == 1 else f"{operation_name(action)} ({count})"
        for action, count in counts.items()
    )
    query = f"?branch={branch_id}" if branch_id else ""
    url = f"{CONSOLE_PATH}/projects/{project_id}/operations{query}"
    link = Markup('<a href="{}">Watch the operations</a>').format(url)
    return Markup("{} Started: {}. {}.").format(done, names, link)
