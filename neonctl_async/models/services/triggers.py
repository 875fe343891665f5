"""Triggers, which invoke functions on a schedule or after an upload."""

from msgspec import UNSET, UnsetType

from neonctl_async.models.base import Model, OpenEnum, Timestamp


class TriggerType(OpenEnum):
    """The event that a trigger reacts to."""

    SCHEDULE = "schedule"
    STORAGE_OBJECT_CREATED = "storage_object_created"


class TriggerSchedule(Model, kw_only=True):
    """The times at which a trigger invokes its function."""

    cron: str
    """A cron expression with five numeric fields, in UTC, such as ``0 3 * * 1``."""


class TriggerStorageObjectCreated(Model, kw_only=True):
    """The uploads after which a trigger invokes its function.

    The function receives a JSON body that contains the trigger's ``type``, and ``data`` with the
    ``bucket_name`` and the ``object_key``.
    """

    bucket_name: str
    prefix: str | UnsetType = UNSET
    """The prefix of the object keys, at most 1024 bytes. If unset, every key matches."""


class Trigger(Model, kw_only=True):
    """A trigger as it applies to a branch.

    The field named after its ``type`` contains the configuration; the other one is None.
    """

    trigger_id: str
    type: TriggerType
    function_slug: str
    """The slug of the function that the trigger invokes."""
    name: str
    function_path: str
    """The path of the requests to the function."""
    enabled: bool
    version: int
    """The version of the configuration. Each change increments it."""
    inherited: bool
    """True if the configuration is from an ancestor of the branch."""
    schedule: TriggerSchedule | None = None
    storage_object_created: TriggerStorageObjectCreated | None = None
    next_run_at: Timestamp | None = None
    """The next scheduled run. None for a trigger that is disabled or has no schedule."""


class TriggerResponse(Model, kw_only=True):
    """A response that contains one trigger."""

    trigger: Trigger


class TriggersResponse(Model, kw_only=True):
    """A response that lists the triggers of a branch."""

    triggers: list[Trigger]
