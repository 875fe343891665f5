"""The Data API: HTTP access to a database of a branch."""

from neonctl_async.resources.base import Resource


class DataApi(Resource):
    """The Data API: HTTP access to a database of a branch."""
