"""Triggers of a branch."""

import builtins
from typing import Literal

from msgspec import UNSET, UnsetType

from neonctl_async.models.base import Empty
from neonctl_async.models.services.triggers import (
    Trigger,
    TriggerResponse,
    TriggerSchedule,
    TriggersResponse,
    TriggerStorageObjectCreated,
)
from neonctl_async.resources.base import Resource, drop_unset

_TRIGGERS = "/projects/{project_id}/branches/{branch_id}/triggers"
_TRIGGER = f"{_TRIGGERS}/{{trigger_id}}"


class Triggers(Resource):
    """Triggers of a branch. A trigger invokes a function on a schedule or after an upload.

    A branch inherits its parent's triggers with their ids, but disabled.
    """

    async def list(self, project_id: str, branch_id: str) -> builtins.list[Trigger]:
        """Return the triggers of a branch, including inherited ones, sorted by id.

        Beta: Neon may change this endpoint.
        """
        response = await self._send("GET", _TRIGGERS, TriggersResponse, project_id, branch_id)
        return response.triggers

    async def get(self, project_id: str, branch_id: str, trigger_id: str) -> Trigger:
        """Return a trigger. Beta: Neon may change this endpoint."""
        response = await self._send(
            "GET", _TRIGGER, TriggerResponse, project_id, branch_id, trigger_id
        )
        return response.trigger

    async def create(
        self,
        project_id: str,
        branch_id: str,
        *,
        type: Literal["schedule", "storage_object_created"],
        function_slug: str,
        name: str,
        function_path: str | UnsetType = UNSET,
        schedule: TriggerSchedule | UnsetType = UNSET,
        storage_object_created: TriggerStorageObjectCreated | UnsetType = UNSET,
        enabled: bool | UnsetType = UNSET,
    ) -> Trigger:
        """Create a trigger for a function of the branch.

        Pass the configuration in the parameter named after the ``type``. No other trigger of the
        branch, not even an inherited one, may have the same name. The trigger requests
        ``function_path``, by default ``/``. Beta: Neon may change this endpoint.
        """
        body = drop_unset(
            type=type,
            function_slug=function_slug,
            name=name,
            function_path=function_path,
            schedule=schedule,
            storage_object_created=storage_object_created,
            enabled=enabled,
        )
        response = await self._send(
            "POST", _TRIGGERS, TriggerResponse, project_id, branch_id, body=body
        )
        return response.trigger

    async def update(
        self,
        project_id: str,
        branch_id: str,
        trigger_id: str,
        *,
        type: Literal["schedule", "storage_object_created"],
        function_slug: str | UnsetType = UNSET,
        name: str | UnsetType = UNSET,
        function_path: str | UnsetType = UNSET,
        schedule: TriggerSchedule | UnsetType = UNSET,
        storage_object_created: TriggerStorageObjectCreated | UnsetType = UNSET,
        enabled: bool | UnsetType = UNSET,
    ) -> Trigger:
        """Change a trigger. ``type`` must be the trigger's type, which cannot be changed.

        An inherited trigger gets its own configuration on the branch, with the same id. It remains
        disabled unless the call enables it. Disabling a trigger does not cancel invocations that
        are already due. Beta: Neon may change this endpoint.
        """
        body = drop_unset(
            type=type,
            function_slug=function_slug,
            name=name,
            function_path=function_path,
            schedule=schedule,
            storage_object_created=storage_object_created,
            enabled=enabled,
        )
        response = await self._send(
            "PATCH", _TRIGGER, TriggerResponse, project_id, branch_id, trigger_id, body=body
        )
        return response.trigger

    async def delete(self, project_id: str, branch_id: str, trigger_id: str) -> None:
        """Delete a trigger. An inherited trigger is deleted on this branch only.

        Invocations that are already due are not cancelled. Beta: Neon may change this endpoint.
        """
        await self._send("DELETE", _TRIGGER, Empty, project_id, branch_id, trigger_id)
