"""Object storage of a branch: buckets and their objects."""

from neonctl_async.resources.base import Resource


class Storage(Resource):
    """Object storage of a branch: buckets and their objects."""
