"""The consumption metrics, each a function of a branch's usage and a timeframe."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from neonctl_local.engine.timeframes import Span
from neonctl_local.engine.usage import BranchUsage

Metric = Callable[[BranchUsage, Span], int]


def _root_bytes_hour(branch: BranchUsage, frame: Span) -> int:
    return branch.bytes_hour(frame) if branch.is_root else 0


def _child_bytes_hour(branch: BranchUsage, frame: Span) -> int:
    return 0 if branch.is_root else branch.bytes_hour(frame)


def _not_measured(branch: BranchUsage, frame: Span) -> int:
    del branch, frame  # All metrics have the same parameters.
    return 0


OF_BRANCHES: Final[Mapping[str, Metric]] = {
    "compute_unit_seconds": BranchUsage.compute_unit_seconds,
    "root_branch_bytes_month": _root_bytes_hour,
    "child_branch_bytes_month": _child_bytes_hour,
    "instant_restore_bytes_month": _not_measured,
    "public_network_transfer_bytes": _not_measured,
    "private_network_transfer_bytes": _not_measured,
}
"""The metrics of branches on usage-based plans. Despite "month" in the names, the unit
of storage is the byte-hour."""

OF_PROJECTS: Final[Mapping[str, Metric]] = {
    **OF_BRANCHES,
    "extra_branches_month": BranchUsage.branch_hours,
    "snapshot_storage_bytes_month": _not_measured,
}
"""The metrics of projects on usage-based plans."""

ALWAYS: Final[Mapping[str, Metric]] = {
    "active_time_seconds": BranchUsage.active_seconds,
    "compute_time_seconds": BranchUsage.compute_unit_seconds,
    "written_data_bytes": _not_measured,
    "synthetic_storage_size_bytes": BranchUsage.size_within,
}
"""The metrics that every timeframe contains on legacy plans."""

LEGACY: Final[Mapping[str, Metric]] = {
    **ALWAYS,
    "data_storage_bytes_hour": BranchUsage.bytes_hour,
    "logical_size_bytes": BranchUsage.size_within,
    "logical_size_bytes_hour": BranchUsage.bytes_hour,
}
"""All metrics on legacy plans."""


def total(metric: Metric, branches: Iterable[BranchUsage], frame: Span) -> int:
    """Return the sum of a metric over branches."""
    return sum(metric(branch, frame) for branch in branches)
