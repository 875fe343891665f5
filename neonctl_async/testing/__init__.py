"""For the tests of code that uses the client: a clock that jumps, answers without a server.

Recorded answers are in :mod:`neonctl_async.testing.recorded`, which needs
``neonctl-async[testing]``.
"""

from neonctl_async.testing.fake_clock import FakeClockLoop, loop_clock, real_time

__all__ = ["FakeClockLoop", "loop_clock", "real_time"]
