"""For tests of code that uses the client."""

from neonctl_async.testing.branches import BranchFactory
from neonctl_async.testing.commands import FaultInForce
from neonctl_async.testing.control_plane import ControlPlane

__all__ = ["BranchFactory", "ControlPlane", "FaultInForce"]
