"""Logs of a branch."""

from neonctl_async.resources.base import Resource


class Logs(Resource):
    """Logs of a branch."""
