"""The differences between an existing object and the requested one. Pure: no I/O."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from neonctl_async.models.branches import Branch, EnsureSettings
from neonctl_async.models.endpoints import (
    Endpoint,
    EndpointSettings,
    EndpointSpec,
    PreloadLibraries,
)

SCHEMA_ONLY: Final = "schema-only"
EXPIRY_TOLERANCE: Final = 0.1
"""The fraction of the requested lifetime by which a branch may expire too early."""

DEFAULTS: Final[Mapping[str, object]] = {"init_source": "parent-data"}
"""The settings that are verified even if they are not given, with their defaults."""
NOT_COMPARED: Final = frozenset({"endpoints", "annotation_value"})
"""The settings that a branch record does not contain. Computes are compared separately."""
_CHANGEABLE: Final = frozenset({"protected", "expires_at"})


def fixed_differences(
    found: Branch, parent: Branch | None, wanted: EnsureSettings, branches: Mapping[str, Branch]
) -> list[str]:
    """Return a sentence for each difference that an update of the branch cannot remove.

    ``parent`` is None if no parent is requested and the project has no default branch. ``branches``
    contains the branches of the project by id, to look up the names of parents.
    """
    differences: list[str] = []
    if found.default or found.primary:
        differences.append("it is the default branch of the project")
    is_root_allowed = wanted.get("init_source") == SCHEMA_ONLY and found.parent_id is None
    is_default = found.default and parent is not None and parent.id == found.id
    if parent is not None and not (parent.id == found.parent_id or is_root_allowed or is_default):
        expected = _described(parent.id, branches)
        differences.append(
            f"it is a root branch instead of a child of {expected}"
            if found.parent_id is None
            else f"its parent is {_described(found.parent_id, branches)} instead of {expected}"
        )
    for name, value in {**DEFAULTS, **wanted}.items():
        wanted_value = DEFAULTS.get(name, UNSET) if value is UNSET else value
        if wanted_value is UNSET or name in NOT_COMPARED | _CHANGEABLE:
            continue
        known = getattr(found, name)
        if (DEFAULTS.get(name) if known is None else known) != wanted_value:
            differences.append(differs(name, known, wanted_value))
    return differences


def changeable_differences(found: Branch, wanted: EnsureSettings) -> dict[str, str]:
    """Return a sentence, by setting, for each difference that an update can remove."""
    differences: dict[str, str] = {}
    protected = wanted.get("protected", UNSET)
    if protected is not UNSET and found.protected != protected:
        differences["protected"] = differs("protected", found.protected, protected)
    expires_at = wanted.get("expires_at", UNSET)
    if isinstance(expires_at, datetime) and found.expires_at is None:
        differences["expires_at"] = f"it never expires instead of at {expires_at.isoformat()}"
    return differences


def expires_too_early(found: datetime | None, wanted: datetime | UnsetType, now: datetime) -> bool:
    """Return whether a branch expires too early for a request at the time ``now``.

    Callers compute ``wanted`` from the current time, so each call requests a different time.
    """
    if found is None or isinstance(wanted, UnsetType):
        return False
    tolerance = max((wanted - now) * EXPIRY_TOLERANCE, timedelta(0))
    return found < wanted - tolerance


def compute_differences(found: Endpoint, wanted: Mapping[str, object]) -> list[str]:
    """Return a sentence for each setting of a compute that differs. Unset values never differ."""
    differences: list[str] = []
    for name, value in wanted.items():
        if isinstance(value, EndpointSettings):
            differences += _settings_differences(found.settings or EndpointSettings(), value)
        elif value is not UNSET and getattr(found, name) != value:
            differences.append(differs(name, getattr(found, name), value))
    return [f"{difference} (compute {found.id})" for difference in differences]


def match_computes(
    found: Sequence[Endpoint], wanted: Sequence[EndpointSpec]
) -> tuple[list[Endpoint], list[str]]:
    """Return an existing compute for each requested one, and a sentence for each difference.

    No compute is returned twice. The computes are in the requested order, and complete if nothing
    differs. Other computes of the branch do not matter.
    """
    settings = [msgspec.structs.asdict(spec) for spec in wanted]
    differing = [[compute_differences(one, values) for one in found] for values in settings]
    chosen = _assign([[not differences for differences in row] for row in differing])
    spare = set(range(len(found))) - set(chosen.values())
    problems: list[str] = []
    for index, spec in enumerate(wanted):
        if index in chosen:
            continue
        similar = [other for other in sorted(spare) if found[other].type == spec.type]
        if similar:
            closest = min(similar, key=lambda other: len(differing[index][other]))
            spare.remove(closest)
            problems += differing[index][closest]
        else:
            problems.append(_lacks(found, spec.type))
    return [found[chosen[index]] for index in range(len(wanted)) if index in chosen], problems


def _assign(fits: Sequence[Sequence[bool]]) -> dict[int, int]:
    """Assign different columns to as many rows as possible. Return the column of each row."""
    owners: dict[int, int] = {}

    def assign(row: int, tried: set[int]) -> bool:
        for column, is_fit in enumerate(fits[row]):
            if is_fit and column not in tried:
                tried.add(column)
                if column not in owners or assign(owners[column], tried):
                    owners[column] = row
                    return True
        return False

    for row in range(len(fits)):
        assign(row, set())
    return {row: column for column, row in owners.items()}


def _lacks(found: Sequence[Endpoint], type: str) -> str:
    others = sum(one.type == type for one in found)
    return f"it has no further {type} compute" if others else f"it has no {type} compute"


def _settings_differences(found: EndpointSettings, wanted: EndpointSettings) -> list[str]:
    """Return the differences in the given values only, because Neon adds default values."""
    return [
        *_item_differences("pg_settings", found.pg_settings, wanted.pg_settings),
        *_item_differences(
            "pgbouncer_settings", found.pgbouncer_settings, wanted.pgbouncer_settings
        ),
        *_library_differences(found.preload_libraries, wanted.preload_libraries),
    ]


def _item_differences(
    name: str, found: dict[str, str] | UnsetType, wanted: dict[str, str] | UnsetType
) -> list[str]:
    known = {} if isinstance(found, UnsetType) else found
    given = {} if isinstance(wanted, UnsetType) else wanted
    return [
        differs(f"{name}[{key!r}]", known.get(key), value)
        for key, value in given.items()
        if known.get(key) != value
    ]


def _library_differences(
    found: PreloadLibraries | UnsetType, wanted: PreloadLibraries | UnsetType
) -> list[str]:
    if isinstance(wanted, UnsetType):
        return []
    known = PreloadLibraries() if isinstance(found, UnsetType) else found
    differences: list[str] = []
    has_defaults = known.use_defaults is True
    if wanted.use_defaults is not UNSET and has_defaults != wanted.use_defaults:
        differences.append(differs("use_defaults", has_defaults, wanted.use_defaults))
    enabled = known.enabled_libraries or []
    libraries = wanted.enabled_libraries
    if not isinstance(libraries, UnsetType) and set(enabled) != set(libraries):
        differences.append(differs("enabled_libraries", enabled, libraries))
    return differences


def differs(name: str, found: object, wanted: object) -> str:
    """Return the sentence about a setting that differs."""
    return f"{name} is {_plain(found)} instead of {_plain(wanted)}"


def _plain(value: object) -> str:
    """Return the repr of a value, or ``not set`` for None. Enumeration members become strings."""
    if value is None:
        return "not set"
    return repr(str(value) if isinstance(value, str) else value)


def _described(branch_id: str, branches: Mapping[str, Branch]) -> str:
    known = branches.get(branch_id)
    return branch_id if known is None else f"{known.name!r} ({branch_id})"
