"""The smallest valid JSON of each record of the services of a branch."""

from neonctl_async.models.base import Model
from neonctl_async.models.services import (
    ai_gateway,
    credentials,
    custom_domains,
    data_api,
    logs,
    triggers,
)
from tests.models.records import NOON, JsonObject
from tests.models.services import auth_records, storage_records

CREDENTIAL: JsonObject = {
    "token_id": "nak_live_0123456789abcdef",
    "token_id_short": "0123456789ab",
    "scopes": ["storage:read", "telemetry:write"],
    "principal_type": "user",
    "created_at": NOON,
}
CREDENTIAL_SECRET: JsonObject = {
    "token_id": "nak_live_0123456789abcdef",
    "api_token": "token-1",
    "s3_secret_access_key": "nsk_live_1",
}
CREDENTIAL_CREATED: JsonObject = {
    **CREDENTIAL_SECRET,
    "token_id_short": "0123456789ab",
    "scopes": ["storage:read"],
    "branch_id": "br-1",
    "created_at": NOON,
}
CUSTOM_DOMAIN: JsonObject = {
    "domain": "shop.example.com",
    "entity_type": "function",
    "entity_id": "shop",
    "cname_target": "edge.example.com",
}
DATA_API: JsonObject = {"url": "https://api.example.com/neondb", "status": "active"}
LOG_RECORD: JsonObject = {"timestamp": NOON, "message": "started", "attributes": {}}
TRIGGER: JsonObject = {
    "trigger_id": "trigger-1",
    "type": "schedule",
    "function_slug": "report",
    "name": "nightly",
    "function_path": "/",
    "enabled": True,
    "version": 1,
    "inherited": False,
}

MINIMAL: dict[type[Model], JsonObject] = {
    **auth_records.MINIMAL,
    **storage_records.MINIMAL,
    ai_gateway.BranchAiGateway: {"enabled": True, "base_url": "https://ai.example.com"},
    credentials.Credential: CREDENTIAL,
    credentials.CredentialCreated: CREDENTIAL_CREATED,
    credentials.CredentialRotated: {**CREDENTIAL_CREATED, "principal_type": "user"},
    credentials.CredentialSecret: CREDENTIAL_SECRET,
    credentials.CredentialsResponse: {"credentials": [CREDENTIAL]},
    custom_domains.CustomDomain: CUSTOM_DOMAIN,
    custom_domains.CustomDomainsPage: {"custom_domains": [CUSTOM_DOMAIN]},
    data_api.BranchDataApi: DATA_API,
    data_api.DataApiCreated: {"url": "https://api.example.com/neondb"},
    data_api.DataApiSettings: {},
    logs.LogFieldsResponse: {"fields": ["service_name"]},
    logs.LogFieldValues: {"values": ["shop"], "is_truncated": False},
    logs.LogRecord: LOG_RECORD,
    logs.LogsPage: {"logs": [LOG_RECORD], "is_truncated": False},
    triggers.Trigger: TRIGGER,
    triggers.TriggerResponse: {"trigger": TRIGGER},
    triggers.TriggerSchedule: {"cron": "0 3 * * *"},
    triggers.TriggersResponse: {"triggers": [TRIGGER]},
    triggers.TriggerStorageObjectCreated: {"bucket_name": "photos"},
}
"""The required fields of every record that responses contain."""

REQUEST_ONLY: list[type[Model]] = []
"""The records that only requests contain."""
