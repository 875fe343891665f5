"""What the platform's advisors have found in a database."""

from neonctl_async.models.base import Model, OpenEnum


class AdvisorCategory(OpenEnum):
    """What an issue endangers."""

    SECURITY = "SECURITY"
    PERFORMANCE = "PERFORMANCE"


class AdvisorFacing(OpenEnum):
    """Whom an issue concerns."""

    EXTERNAL = "EXTERNAL"
    INTERNAL = "INTERNAL"


class AdvisorIssue(Model, kw_only=True):
    """An issue. ``level`` is ``INFO``, ``WARN`` or ``ERROR``; ``cache_key`` tells issues apart."""

    name: str
    title: str
    level: str
    cache_key: str
    facing: AdvisorFacing | None = None
    categories: list[AdvisorCategory] = []
    description: str | None = None
    detail: str | None = None
    remediation: str | None = None
    metadata: dict[str, object] = {}


class AdvisorIssuesResponse(Model, kw_only=True):
    """The answer of ``GET /projects/{project_id}/advisors``."""

    issues: list[AdvisorIssue]
