"""Known differences from the published description, each with its reason."""

from collections.abc import Mapping

_OPERATIONS = "the response contains the operations that started (specification, section 4.5)"

NOT_SENT: Mapping[str, str] = {}
"""Published properties that no parameter sends, such as ``PATCH /path: branch.name``."""

RENAMED: Mapping[str, str] = {}
"""The published names of keywords that are named differently, such as ``branches.create.name``."""

WITHOUT_METHOD: Mapping[str, str] = {}
"""Endpoints of the tested tags that only ``neon.request`` calls."""

DIFFERENCES: Mapping[str, str] = {
    "ApiKey.created_by: ApiKeyCreator or str, although only object is published": (
        "documented responses contain an id"
    ),
    "OperationAction: delete_tenant not published": "Neon's documentation lists this action",
    "Branch.annotation: not published": (
        "the response contains the annotation beside the branch; the library adds it to the branch"
    ),
    "ProjectDeleted.operations: not published": _OPERATIONS,
    "ProjectRecovered.operations: not published": _OPERATIONS,
    "Project.locked: not published": "recorded responses contain it (tests/data/projects.json)",
}
"""Differences between Structs and published schemas."""

STARTS_OPERATIONS: Mapping[str, str] = {
    "DELETE /projects/{project_id}": "Neon runs delete_tenant",
    "POST /projects/{project_id}/recover": "the local control plane runs tenant_attach",
}
"""Endpoints that start operations, although their published responses have none."""

EXTRA_LOCAL_FIELDS: Mapping[str, str] = {
    "$.operations is not published": _OPERATIONS,
    ".active_time is not published": (
        "published for listed projects; the local control plane has one form for all responses"
    ),
    ".locked is not published": "recorded responses contain it (tests/data/projects.json)",
}
"""Fields in responses of the local control plane that are not published."""
