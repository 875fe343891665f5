"""Records as response models of FastAPI, and as fields of Pydantic models."""

import subprocess
import sys
from typing import Any

import httpx
import msgspec
import pytest
from fastapi import FastAPI
from pydantic import BaseModel, TypeAdapter, ValidationError

from neonctl_async.models.base import Model
from neonctl_async.types import Branch, BranchCreated, Operation
from tests.models.records import BRANCH, CONNECTION, MINIMAL, OPERATION, decode

CREATED: dict[str, object] = {
    "branch": BRANCH,
    "operations": [{**OPERATION, "status": "paused"}],
    "connection_uris": [CONNECTION],
}


class Preview(BaseModel):
    branch: Branch
    note: str = ""


app = FastAPI()


@app.post("/branches")
async def create() -> BranchCreated:
    return decode(BranchCreated, CREATED)


@app.get("/branches")
async def branches() -> list[Branch]:
    return [decode(Branch, BRANCH)]


@app.post("/previews")
async def preview(given: Preview) -> Preview:
    assert isinstance(given.branch, Branch)
    return given


async def response(method: str, path: str, body: object = None) -> httpx.Response:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://app") as http:
        return await http.request(method, path, json=body)


async def test_response_model_hides_secrets_and_keeps_unknown_words() -> None:
    sent = await response("POST", "/branches")
    assert sent.json() == decode(BranchCreated, CREATED).to_dict()
    assert sent.json()["operations"][0]["status"] == "paused"
    assert "hunter2" not in sent.text


async def test_list_of_records_is_a_response_model() -> None:
    assert (await response("GET", "/branches")).json() == [decode(Branch, BRANCH).to_dict()]


async def test_record_in_a_body_is_validated() -> None:
    accepted = await response("POST", "/previews", {"branch": BRANCH, "note": "x"})
    assert accepted.json() == {"branch": decode(Branch, BRANCH).to_dict(), "note": "x"}
    refused = await response("POST", "/previews", {"branch": {**BRANCH, "name": 1}})
    assert refused.status_code == 422
    assert "Expected `str`, got `int` - at `$.name`" in refused.json()["detail"][0]["msg"]


async def test_records_are_schemas_of_the_openapi_document() -> None:
    document = (await response("GET", "/openapi.json")).json()
    schemas = document["components"]["schemas"]
    branch: dict[str, Any] = schemas["Branch"]
    assert branch["required"] == [
        *("id", "project_id", "name", "current_state", "created_at", "updated_at")
    ]
    assert branch["properties"]["created_at"] == {"type": "string", "format": "date-time"}
    status = schemas["BranchCreated"]["properties"]["operations"]["items"]["properties"]["status"]
    assert status["type"] == "string"
    assert "finished" in status["examples"]
    listed = document["paths"]["/branches"]["get"]["responses"]["200"]["content"]
    assert listed["application/json"]["schema"]["items"] == {"$ref": "#/components/schemas/Branch"}
    assert "$defs" not in str(schemas)


def test_model_dump_keeps_the_record() -> None:
    branch = decode(Branch, BRANCH)
    assert Preview(branch=branch).model_dump()["branch"] is branch


def test_wrong_value_is_an_error_of_pydantic() -> None:
    with pytest.raises(ValidationError, match="Expected `object`, got `int`"):
        TypeAdapter(Operation).validate_python(1)


@pytest.mark.parametrize("kind", MINIMAL, ids=lambda kind: kind.__name__)
def test_every_record_has_a_schema(kind: type[Model]) -> None:
    adapter = TypeAdapter(kind)
    assert adapter.json_schema()
    record = decode(kind, MINIMAL[kind])
    assert adapter.validate_python(record) is record
    assert msgspec.json.decode(adapter.dump_json(record)) == record.to_dict()


@pytest.mark.process
def test_records_do_not_import_pydantic() -> None:
    code = "import sys, neonctl_async.types; print([m for m in sys.modules if 'pydantic' in m])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
