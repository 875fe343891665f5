"""The AI gateway of a branch."""

from neonctl_async.models.services.ai_gateway import BranchAiGateway
from neonctl_async.resources.base import Resource


class AiGateway(Resource):
    """The AI gateway of a branch."""

    async def get(self, project_id: str, branch_id: str) -> BranchAiGateway:
        """Return the address of the AI gateway.

        Raises NotFoundError if there is none. Its ``reason`` is ``ai_gateway_unavailable`` if the
        region has no AI gateway, or ``branch_not_found``. Beta: Neon may change this endpoint.
        """
        return await self._send(
            "GET",
            "/projects/{project_id}/branches/{branch_id}/ai_gateway",
            BranchAiGateway,
            project_id,
            branch_id,
        )
