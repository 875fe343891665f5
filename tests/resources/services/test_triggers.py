from typing import Any

import pytest

from neonctl_async.types import Trigger, TriggerSchedule, TriggerStorageObjectCreated
from tests.models.records import NOON
from tests.models.services.records import TRIGGER
from tests.resources.wire import Call, no_content, record_in, records_in

PATH = "/projects/p-1/branches/br-1/triggers"
ONE = f"{PATH}/trigger-1"
NIGHTLY: dict[str, Any] = {"type": "schedule", "function_slug": "report", "name": "nightly"}
SCHEDULE = {"cron": "0 3 * * *"}
UPLOADS = {"bucket_name": "photos", "prefix": "new/"}
SCHEDULED = record_in("trigger", Trigger, {**TRIGGER, "schedule": SCHEDULE, "next_run_at": NOON})
ON_UPLOAD = record_in(
    "trigger",
    Trigger,
    {**TRIGGER, "type": "storage_object_created", "storage_object_created": UPLOADS},
)

CALLS = [
    Call(
        lambda neon: neon.triggers.list("p-1", "br-1"),
        f"GET {PATH}",
        records_in("triggers", Trigger, {**TRIGGER, "schedule": SCHEDULE, "next_run_at": None}),
    ),
    Call(lambda neon: neon.triggers.get("p-1", "br-1", "trigger-1"), f"GET {ONE}", SCHEDULED),
    Call(
        lambda neon: neon.triggers.create(
            "p-1", "br-1", **NIGHTLY, schedule=TriggerSchedule(cron="0 3 * * *")
        ),
        f"POST {PATH}",
        SCHEDULED,
        body={**NIGHTLY, "schedule": SCHEDULE},
    ),
    Call(
        lambda neon: neon.triggers.create(
            "p-1",
            "br-1",
            type="storage_object_created",
            function_slug="resize",
            name="new photos",
            function_path="/resize",
            storage_object_created=TriggerStorageObjectCreated(bucket_name="photos", prefix="new/"),
            enabled=False,
        ),
        f"POST {PATH}",
        ON_UPLOAD,
        body={
            "type": "storage_object_created",
            "function_slug": "resize",
            "name": "new photos",
            "function_path": "/resize",
            "storage_object_created": UPLOADS,
            "enabled": False,
        },
    ),
    Call(
        lambda neon: neon.triggers.update(
            "p-1", "br-1", "trigger-1", type="schedule", enabled=False
        ),
        f"PATCH {ONE}",
        SCHEDULED,
        body={"type": "schedule", "enabled": False},
    ),
    Call(
        lambda neon: neon.triggers.update(
            "p-1",
            "br-1",
            "trigger-1",
            type="storage_object_created",
            function_slug="resize",
            name="photos",
            function_path="/",
            storage_object_created=TriggerStorageObjectCreated(bucket_name="photos"),
        ),
        f"PATCH {ONE}",
        ON_UPLOAD,
        body={
            "type": "storage_object_created",
            "function_slug": "resize",
            "name": "photos",
            "function_path": "/",
            "storage_object_created": {"bucket_name": "photos"},
        },
    ),
    Call(
        lambda neon: neon.triggers.update(
            "p-1",
            "br-1",
            "trigger-1",
            type="schedule",
            schedule=TriggerSchedule(cron="*/5 * * * *"),
        ),
        f"PATCH {ONE}",
        SCHEDULED,
        body={"type": "schedule", "schedule": {"cron": "*/5 * * * *"}},
    ),
    Call(
        lambda neon: neon.triggers.delete("p-1", "br-1", "trigger-1"), f"DELETE {ONE}", no_content()
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_request_and_result(call: Call) -> None:
    await call.check()
