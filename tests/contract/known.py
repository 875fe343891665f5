"""Known differences from the published description, each with its reason."""

from collections.abc import Mapping

NOT_SENT: Mapping[str, Mapping[str, str]] = {}
"""What a method does not send, by method."""

RENAMED: Mapping[str, str] = {}
"""Keywords with a name of their own, and the published one."""

NO_METHOD: Mapping[str, str] = {}
"""Endpoints of the chosen tags that are left to ``neon.request``."""

DIFFERENCES: Mapping[str, str] = {}
"""What a Struct reads otherwise than published."""
