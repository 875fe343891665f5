"""Known differences from the published description, each with its reason."""

from collections.abc import Mapping

_TOLD = "what starts work tells its operations (specification, section 4.5)"

NOT_SENT: Mapping[str, str] = {}
"""What no parameter sends, as ``PATCH /path: branch.name``."""

RENAMED: Mapping[str, str] = {}
"""Keywords with a name of their own, and the published one."""

NO_METHOD: Mapping[str, str] = {}
"""Endpoints of the chosen tags that are left to ``neon.request``."""

DIFFERENCES: Mapping[str, str] = {
    "ApiKey.created_by: ApiKeyCreator or str where only object is published": (
        "documented answers hold a plain id"
    ),
    "OperationAction: delete_tenant not published": "the platform documents it as an operation",
    "Branch.annotation: not published": "comes beside the branch, and is put into it",
    "ProjectDeleted.operations: not published": _TOLD,
    "ProjectRecovered.operations: not published": _TOLD,
    "Project.locked: not published": "recorded answers hold it (tests/data/projects.json)",
}
"""What a Struct reads otherwise than published."""

STARTS: Mapping[str, str] = {
    "DELETE /projects/{project_id}": "the platform does so by delete_tenant",
    "POST /projects/{project_id}/recover": "the local control plane does so by tenant_attach",
}
"""Endpoints that start operations, though no operations are published in their answers."""

NOT_SERVED_LOCALLY: Mapping[str, str] = dict.fromkeys(
    (
        "consumption.branches_v2",
        "consumption.projects",
        "consumption.projects_v2",
        "organizations.create_invitations",
        "organizations.delete_spending_limit",
        "organizations.get_spending_limit",
        "organizations.list_invitations",
        "organizations.set_spending_limit",
    ),
    "bills and e-mails are no matter of the local control plane",
)
"""Methods whose endpoints the local control plane does not serve."""

TOLD_LOCALLY: Mapping[str, str] = {
    "$.operations is not published": _TOLD,
    ".active_time is not published": "published of listed projects, and every record is made alike",
    ".locked is not published": "recorded answers hold it (tests/data/projects.json)",
}
"""What the local control plane answers beyond what is published."""
