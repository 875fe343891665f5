"""Credentials of a branch: tokens for its services."""

from neonctl_async.resources.base import Resource


class Credentials(Resource):
    """Credentials of a branch: tokens for its services."""
