"""Finds the data of a branch at a point in time. Local branches keep no history of their own."""

from collections.abc import Sequence
from typing import NamedTuple

from neonctl_local.clock import Instant


class Content(NamedTuple):
    """The data of a branch from ``changed_at`` to ``until``, in the cluster with this id.

    ``until`` is the time at which a snapshot was taken. None is the present.
    """

    id: str
    changed_at: Instant
    until: Instant | None


def content_at(at: Instant, contents: Sequence[Content]) -> str | None:
    """Return the id of a cluster that certainly has the data of the time ``at``, or None.

    Between the last change in a snapshot and the next one, nobody knows when the data changed.
    """
    for content in contents:
        if content.changed_at <= at and (content.until is None or at <= content.until):
            return content.id
    return None
