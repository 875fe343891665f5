"""Functions of a branch, and their deployments."""

from neonctl_async.resources.base import Resource


class Functions(Resource):
    """Functions of a branch, and their deployments."""
