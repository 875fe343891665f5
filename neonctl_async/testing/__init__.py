"""Tools for tests of code that uses the client.

``FakeClockLoop`` and the functions around it need nothing else. All other names are of the pytest
plugin. They and :mod:`neonctl_async.testing.recorded`, recorded responses, need
``neonctl-async[testing]``.
"""

from typing import TYPE_CHECKING

from neonctl_async._internal import lazy_names

# Type checkers read these imports. At runtime, a name is imported on first use, because the names
# of the plugin import the local control plane.
if TYPE_CHECKING:
    from neonctl_async.testing.fake_clock import (
        FakeClockLoop,
        loop_clock,
        real_time,
        real_time_hooks,
    )
    from neonctl_async.testing.plugin.branches import BranchFactory
    from neonctl_async.testing.plugin.control_plane import ControlPlane
    from neonctl_async.testing.plugin.django_databases import django_files
    from neonctl_async.testing.plugin.migration_key import alembic_files
    from neonctl_async.testing.plugin.migrations import CachedMigrations
    from neonctl_async.testing.plugin.scopes import branch_fixture
    from neonctl_async.testing.plugin.tenant_calls import ActiveFault
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            ".fake_clock": ("FakeClockLoop", "loop_clock", "real_time", "real_time_hooks"),
            ".plugin.branches": ("BranchFactory",),
            ".plugin.control_plane": ("ControlPlane",),
            ".plugin.django_databases": ("django_files",),
            ".plugin.migration_key": ("alembic_files",),
            ".plugin.migrations": ("CachedMigrations",),
            ".plugin.scopes": ("branch_fixture",),
            ".plugin.tenant_calls": ("ActiveFault",),
        },
    )

__all__ = [
    "ActiveFault",
    "BranchFactory",
    "CachedMigrations",
    "ControlPlane",
    "FakeClockLoop",
    "alembic_files",
    "branch_fixture",
    "django_files",
    "loop_clock",
    "real_time",
    "real_time_hooks",
]
