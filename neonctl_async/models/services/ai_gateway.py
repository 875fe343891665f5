"""The AI gateway of a branch."""

from neonctl_async.models.base import Model


class BranchAiGateway(Model, kw_only=True):
    """The address of a branch's AI gateway."""

    enabled: bool
    """Always True."""
    base_url: str
    """The base URL of all routes. Append a route, such as ``/ai-gateway/openai/v1/responses``."""
