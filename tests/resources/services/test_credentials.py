import pytest

from neonctl_async.types import (
    Credential,
    CredentialCreated,
    CredentialRotated,
    CredentialScope,
    CredentialSecret,
)
from tests.models.services.records import CREDENTIAL, CREDENTIAL_CREATED, CREDENTIAL_SECRET
from tests.resources.wire import Call, no_content, record, records_in, responding_with

PATH = "/projects/p-1/branches/br-1/credentials"
IDS = ("p-1", "br-1", "nak_live_1")
CREATED = record(CredentialCreated, CREDENTIAL_CREATED, 201)

CALLS = [
    Call(
        lambda neon: neon.credentials.list("p-1", "br-1"),
        f"GET {PATH}",
        records_in("credentials", Credential, CREDENTIAL),
    ),
    Call(
        lambda neon: neon.credentials.create("p-1", "br-1", scopes=["storage:read"]),
        f"POST {PATH}",
        CREATED,
        body={"scopes": ["storage:read"], "principal_type": "user"},
    ),
    Call(
        lambda neon: neon.credentials.create(
            "p-1",
            "br-1",
            scopes=(CredentialScope.STORAGE_WRITE, CredentialScope.AI_GATEWAY_INVOKE),
            name="uploads",
            principal_type="user",
        ),
        f"POST {PATH}",
        CREATED,
        body={
            "scopes": ["storage:write", "ai_gateway:invoke"],
            "name": "uploads",
            "principal_type": "user",
        },
    ),
    Call(lambda neon: neon.credentials.revoke(*IDS), f"DELETE {PATH}/nak_live_1", no_content()),
    Call(
        lambda neon: neon.credentials.reveal(*IDS),
        f"POST {PATH}/nak_live_1/reveal",
        record(CredentialSecret, CREDENTIAL_SECRET),
    ),
    Call(
        lambda neon: neon.credentials.rotate(*IDS),
        f"POST {PATH}/nak_live_1/rotate",
        record(CredentialRotated, {**CREDENTIAL_CREATED, "principal_type": "user"}),
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_request_and_result(call: Call) -> None:
    await call.check()


async def test_scope_that_the_library_does_not_know_is_kept() -> None:
    content = {"credentials": [{**CREDENTIAL, "scopes": ["queues:read"]}]}
    async with responding_with(content) as exchange:
        [credential] = await exchange.neon.credentials.list("p-1", "br-1")
    assert credential.scopes == ["queues:read"]
    assert not credential.scopes[0].is_known
