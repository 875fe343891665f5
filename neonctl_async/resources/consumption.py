"""The consumption of projects and branches."""

from collections.abc import Sequence
from datetime import datetime
from operator import attrgetter
from typing import Literal, TypeAlias

from msgspec import UNSET, UnsetType

from neonctl_async.models.consumption import (
    BranchMetrics,
    BranchMetricsPage,
    ProjectConsumption,
    ProjectConsumptionPage,
    ProjectMetrics,
    ProjectMetricsPage,
)
from neonctl_async.pagination import Paginator
from neonctl_async.resources.base import Resource, as_list, check_within
from neonctl_async.transport.protocol import request

Granularity: TypeAlias = Literal["hourly", "daily", "monthly"]

MAX_PROJECTS = 100
MAX_BRANCHES = 1000


class Consumption(Resource):
    """The consumption of projects and branches, on paid plans.

    ``from_`` and ``to`` need a time zone; Neon rounds them to the ``granularity``. Neon keeps
    ``hourly`` data for 168 hours, ``daily`` data for 60 days and ``monthly`` data for a year.
    """

    def projects(
        self,
        *,
        from_: datetime,
        to: datetime,
        granularity: Granularity,
        limit: int | UnsetType = UNSET,
        project_ids: Sequence[str] | UnsetType = UNSET,
        org_id: str | UnsetType = UNSET,
        metrics: Sequence[str] | UnsetType = UNSET,
    ) -> Paginator[ProjectConsumption]:
        """List the consumption of projects on legacy plans.

        ``limit`` is the page size, 1 to 100; Neon's default is 10. Without ``org_id``, the result
        contains the user's own projects. ``metrics`` are field names of
        :class:`ProjectConsumptionTimeframe`; by default, Neon returns four of them.
        """
        check_within("limit", limit, 1, MAX_PROJECTS)
        first = request(
            "GET",
            "/consumption_history/projects",
            ProjectConsumptionPage,
            query={
                "from": from_,
                "to": to,
                "granularity": granularity,
                "limit": limit,
                "project_ids": _filter("project_ids", project_ids),
                "org_id": org_id,
                "metrics": _filter("metrics", metrics),
            },
        )
        return self._paginate(first, lambda page: page.projects, attrgetter("project_id"))

    def projects_v2(
        self,
        *,
        org_id: str,
        from_: datetime,
        to: datetime,
        granularity: Granularity,
        metrics: Sequence[str],
        limit: int | UnsetType = UNSET,
        project_ids: Sequence[str] | UnsetType = UNSET,
    ) -> Paginator[ProjectMetrics]:
        """List the consumption of projects on usage-based plans.

        ``limit`` is the page size, 1 to 100; Neon's default is 10. ``metrics`` are any of
        ``compute_unit_seconds``, ``root_branch_bytes_month``, ``child_branch_bytes_month``,
        ``instant_restore_bytes_month``, ``public_network_transfer_bytes``,
        ``private_network_transfer_bytes``, ``extra_branches_month`` and
        ``snapshot_storage_bytes_month``.
        """
        check_within("limit", limit, 1, MAX_PROJECTS)
        first = request(
            "GET",
            "/consumption_history/v2/projects",
            ProjectMetricsPage,
            query={
                "org_id": org_id,
                "from": from_,
                "to": to,
                "granularity": granularity,
                "metrics": _filter("metrics", metrics),
                "limit": limit,
                "project_ids": _filter("project_ids", project_ids),
            },
        )
        return self._paginate(first, lambda page: page.projects, attrgetter("project_id"))

    def branches_v2(
        self,
        *,
        org_id: str,
        project_ids: Sequence[str],
        from_: datetime,
        to: datetime,
        granularity: Granularity,
        metrics: Sequence[str],
        limit: int | UnsetType = UNSET,
        branch_ids: Sequence[str] | UnsetType = UNSET,
    ) -> Paginator[BranchMetrics]:
        """List the consumption of the branches of 1 to 100 projects on usage-based plans.

        ``limit`` is the page size, 1 to 1000; Neon's default is 100. ``metrics`` are any of the
        first six metrics of :meth:`projects_v2`.

        Beta: Neon may change this endpoint.
        """
        check_within("limit", limit, 1, MAX_BRANCHES)
        first = request(
            "GET",
            "/consumption_history/v2/branches",
            BranchMetricsPage,
            query={
                "org_id": org_id,
                "project_ids": _filter("project_ids", project_ids),
                "from": from_,
                "to": to,
                "granularity": granularity,
                "metrics": _filter("metrics", metrics),
                "limit": limit,
                "branch_ids": _filter("branch_ids", branch_ids),
            },
        )
        return self._paginate(
            first, lambda page: page.branches, attrgetter("project_id", "branch_id")
        )


def _filter(name: str, values: Sequence[str] | UnsetType) -> list[str] | UnsetType:
    items = as_list(name, values)
    if not items and items is not UNSET:
        raise ValueError(f"{name} is empty: expected at least one; an empty filter selects all")
    return items
