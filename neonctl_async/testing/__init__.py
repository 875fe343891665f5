"""Tools for tests of code that uses the client.

Recorded responses are in :mod:`neonctl_async.testing.recorded`, which needs
``neonctl-async[testing]``.
"""

from neonctl_async.testing.fake_clock import FakeClockLoop, loop_clock, real_time, real_time_hooks
from neonctl_async.testing.plugin.branches import BranchFactory
from neonctl_async.testing.plugin.control_plane import ControlPlane
from neonctl_async.testing.plugin.tenant_calls import ActiveFault

__all__ = [
    "ActiveFault",
    "BranchFactory",
    "ControlPlane",
    "FakeClockLoop",
    "loop_clock",
    "real_time",
    "real_time_hooks",
]
