"""Tools for testing code that uses the client.

The fake clock needs nothing else. Recorded responses, :mod:`neonctl_async.testing.recorded`, need
``neonctl-async[testing]``. The pytest plugin is a package of its own, ``pytest_neonctl_async``.
"""

from neonctl_async.testing.fake_clock import FakeClockLoop, loop_clock, real_time, real_time_hooks

__all__ = ["FakeClockLoop", "loop_clock", "real_time", "real_time_hooks"]
