"""For tests of code that uses the client.

Recorded answers are in :mod:`neonctl_async.testing.recorded`, which needs
``neonctl-async[testing]``.
"""

from neonctl_async.testing.fake_clock import FakeClockLoop, loop_clock, real_answers, real_time
from neonctl_async.testing.plugin.branches import BranchFactory
from neonctl_async.testing.plugin.commands import FaultInForce
from neonctl_async.testing.plugin.control_plane import ControlPlane

__all__ = [
    "BranchFactory",
    "ControlPlane",
    "FakeClockLoop",
    "FaultInForce",
    "loop_clock",
    "real_answers",
    "real_time",
]
