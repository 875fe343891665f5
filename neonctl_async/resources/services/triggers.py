"""Triggers of a branch."""

from neonctl_async.resources.base import Resource


class Triggers(Resource):
    """Triggers of a branch."""
