"""Known differences from the published description, each with its reason."""

from collections.abc import Mapping

_OPERATIONS = "the response contains the operations that started (specification, section 4.5)"

NOT_SENT: Mapping[str, str] = {
    "POST /projects/{project_id}/branches/{branch_id}/logs/query: cursor": (
        "the paginator sends it with the second page"
    ),
}
"""Published properties that no parameter sends, such as ``PATCH /path: branch.name``."""

REQUIRED_TOGETHER: Mapping[str, str] = {
    "triggers.create": "schedule",  # the type of the trigger requires it
}
"""The optional keyword that the value of a required one makes required, by method."""

LARGEST_PAGES: Mapping[str, int | None] = {
    "logs.query": 1000,  # the text of the endpoint
    "projects.list_members": None,
}
"""The largest page of lists whose parameter has no published maximum. None means unknown."""

RENAMED: Mapping[str, str] = {}
"""The published names of keywords that are named differently, such as ``branches.create.name``."""

WITHOUT_METHOD: Mapping[str, str] = {}
"""Endpoints that only ``neon.request`` calls, although they are not deprecated."""

DIFFERENCES: Mapping[str, str] = {
    "ApiKey.created_by: ApiKeyCreator or str, although only object is published": (
        "documented responses contain an id"
    ),
    "OperationAction: delete_tenant not published": "Neon's documentation lists this action",
    "Branch.annotation: not published": (
        "the response contains the annotation beside the branch; the library adds it to the branch"
    ),
    "CredentialRotated.principal_type: str instead of the published enumeration user": (
        "the same field of other records is a string, and an enumeration could only have one value"
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

CHANGED: Mapping[str, str] = {
    r"effective_project_permission = CAN_(VIEW|EDIT|MANAGE)": "Neon renamed the levels",
    r"stability: stable -> beta": "the SDK documents anonymized branches as beta",
    r"stability: beta -> unpublished": "see UNPUBLISHED",
    r"synthetic_storage_size_bytes: .*, required -> .*, deprecated, required": (
        "Neon deprecated the field"
    ),
}
"""The parts of endpoints that the newest description lacks or changes, with their reasons.

Each key is a regular expression for the end of a change, such as ``GET /path: parameter search``.
"""

UNPUBLISHED: Mapping[str, str] = {
    "POST /projects/{project_id}/branches/{branch_id}/recover": (
        "Neon's SDK lacks it, and Neon never announced it; it is kept while the service has it"
    ),
}
"""The endpoints with a method that only the older description has."""

UNPUBLISHED_PARAMETERS: Mapping[str, Mapping[str, str]] = {
    "DELETE /projects/{project_id}/branches/{branch_id}": {
        "hard_delete": "Neon's SDK lacks it; it belongs to the recovery of branches",
    },
}
"""The query parameters that only the older description has, and that methods send."""

FRACTIONS = frozenset[str]()
"""The names of numbers that may have fractions, and that only the newest description has."""

TIMESTAMPS = frozenset({"timestamp"})
"""The names of timestamps that only the newest description has, besides those that end in _at."""
