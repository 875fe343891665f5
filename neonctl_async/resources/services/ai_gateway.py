"""The AI gateway of a branch."""

from neonctl_async.resources.base import Resource


class AiGateway(Resource):
    """The AI gateway of a branch."""
