"""The pagination object (specification, section 2.4)."""

from neonctl_async.models.base import Model


class Pagination(Model, kw_only=True):
    """Where the next page begins: ``cursor`` or ``next``, by endpoint.

    Both are opaque, and both go back as the query parameter ``cursor``.
    """

    cursor: str | None = None
    next: str | None = None
    sort_by: str | None = None
    sort_order: str | None = None

    @property
    def following(self) -> str | None:
        """What goes back as ``cursor`` for the next page; None at the end."""
        return self.cursor or self.next or None
