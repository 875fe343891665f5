"""Known differences from the published description, each with its reason."""

from collections.abc import Mapping

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
    "Branch.annotation: not published": "comes beside the branch, and is put into it",
    "Project.locked: not published": "recorded answers hold it (tests/data/projects.json)",
}
"""What a Struct reads otherwise than published."""
