"""Tools for tests of code that uses the client.

``BranchFactory``, ``ControlPlane`` and ``ActiveFault`` are of the pytest plugin. They and
:mod:`neonctl_async.testing.recorded`, recorded responses, need ``neonctl-async[testing]``.
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
    from neonctl_async.testing.plugin.tenant_calls import ActiveFault
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            ".fake_clock": ("FakeClockLoop", "loop_clock", "real_time", "real_time_hooks"),
            ".plugin.branches": ("BranchFactory",),
            ".plugin.control_plane": ("ControlPlane",),
            ".plugin.tenant_calls": ("ActiveFault",),
        },
    )

__all__ = [
    "ActiveFault",
    "BranchFactory",
    "ControlPlane",
    "FakeClockLoop",
    "loop_clock",
    "real_time",
    "real_time_hooks",
]
