"""Custom domains of a branch."""

from neonctl_async.resources.base import Resource


class CustomDomains(Resource):
    """Custom domains of a branch."""
