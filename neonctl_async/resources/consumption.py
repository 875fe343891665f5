"""What projects and branches have consumed."""

from collections.abc import Sequence
from datetime import datetime
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
    """What projects and branches have consumed, on plans that are paid for.

    ``from_`` and ``to`` are rounded to the ``granularity``: ``hourly`` reaches back 168 hours,
    ``daily`` 60 days, ``monthly`` a year.
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
        """What projects have consumed, under plans of the older kind.

        ``limit`` is the size of a page, 1 to 100; the platform takes 10 if it is left out.
        Without ``org_id`` they are the user's own projects. ``metrics`` names fields of
        :class:`ProjectConsumptionTimeframe`; left out, the platform tells four of them.
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
        return self._requester.paginate(
            first, lambda page: page.projects, lambda project: project.project_id
        )

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
        """What projects have consumed, under plans that are paid by usage.

        ``limit`` is the size of a page, 1 to 100; the platform takes 10 if it is left out.
        ``metrics`` are among ``compute_unit_seconds``, ``root_branch_bytes_month``,
        ``child_branch_bytes_month``, ``instant_restore_bytes_month``,
        ``public_network_transfer_bytes``, ``private_network_transfer_bytes``,
        ``extra_branches_month`` and ``snapshot_storage_bytes_month``.
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
        return self._requester.paginate(
            first, lambda page: page.projects, lambda project: project.project_id
        )

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
        """What the branches of 1 to 100 projects have consumed, under plans paid by usage.

        ``limit`` is the size of a page, 1 to 1000; the platform takes 100 if it is left out.
        ``metrics`` are the first six of those of :meth:`projects_v2`.
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
        return self._requester.paginate(
            first, lambda page: page.branches, lambda branch: (branch.project_id, branch.branch_id)
        )


def _filter(name: str, values: Sequence[str] | UnsetType) -> list[str] | UnsetType:
    wanted = as_list(name, values)
    if not wanted and wanted is not UNSET:
        raise ValueError(f"{name} is empty: name one at least, for a query of none asks for all")
    return wanted
