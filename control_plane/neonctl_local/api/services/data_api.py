"""Requests that manage the Data API of a database. The host of its URL does not exist here."""

import msgspec
from msgspec import UNSET, UnsetType

from neonctl_local.api.request import access
from neonctl_local.api.request.bodies import Body, HttpsUrl
from neonctl_local.api.request.calls import Call, Response, json_text, respond
from neonctl_local.api.services import hosts
from neonctl_local.engine import branch_objects
from neonctl_local.engine.branches import check_may_expire
from neonctl_local.engine.services import data_apis
from neonctl_local.errors import ApiError, conflict, invalid
from neonctl_local.storage.service_tables import DataApi
from neonctl_local.storage.tables import Branch, Database
from neonctl_local.storage.transactions import Transaction


class Settings(Body, frozen=True):
    """The settings of a Data API, with the published defaults."""

    db_aggregates_enabled: bool = True
    db_anon_role: str = "anonymous"
    db_extra_search_path: str | UnsetType = UNSET
    db_max_rows: int = 1000
    db_schemas: list[str] = msgspec.field(default_factory=lambda: ["public"])
    jwt_role_claim_key: str = ".role"
    jwt_cache_max_lifetime: int | UnsetType = UNSET
    openapi_mode: str = "disabled"
    server_cors_allowed_origins: str | UnsetType = UNSET
    server_timing_enabled: bool = False


class DataApiCreate(Body, frozen=True):
    """A Data API to create. The fields about tokens have no effect here."""

    auth_provider: str | None = None
    jwks_url: HttpsUrl | None = None
    settings: Settings = Settings()


class DataApiChanges(Body, frozen=True):
    """Changes to a Data API. New settings replace all old ones."""

    settings: Settings | UnsetType = UNSET


def create(tx: Transaction, call: Call) -> Response:
    """``POST .../data-api/{database_name}``: return 409 if the database already has one."""
    branch, database = _database(tx, call)
    body = call.body(DataApiCreate)
    if body.auth_provider == "external" and body.jwks_url is None:
        raise invalid(
            "invalid request: jwks_url: field required, because auth_provider is 'external'"
        )
    if data_apis.find(tx, branch.id, database.name) is not None:
        raise conflict(
            f"the Data API is already enabled for database {database.name!r} "
            f"of branch {branch.id!r}"
        )
    data_api = DataApi(
        id=0,
        branch_id=branch.id,
        database_name=database.name,
        settings=json_text(body.settings),
        created_at=tx.now,
    )
    data_api = tx.insert(data_api)
    check_may_expire(tx, branch)
    return respond({"url": _url(tx, branch, data_api)}, 201)


def get(tx: Transaction, call: Call) -> Response:
    """``GET .../branches/{branch_id}/data-api/{database_name}``."""
    branch, data_api = _find(tx, call)
    settings = msgspec.json.decode(data_api.settings, type=Settings)
    return respond({"url": _url(tx, branch, data_api), "status": "active", "settings": settings})


def update(tx: Transaction, call: Call) -> Response:
    """``PATCH .../data-api/{database_name}``: replace the settings.

    Without settings, nothing changes; on Neon, such a request refreshes a cache.
    """
    _, data_api = _find(tx, call)
    settings = call.body(DataApiChanges).settings
    if settings is not UNSET:
        tx.update(data_api, settings=json_text(settings))
    return respond({}, 201)


def delete(tx: Transaction, call: Call) -> Response:
    """``DELETE .../branches/{branch_id}/data-api/{database_name}``."""
    branch, data_api = _find(tx, call)
    data_apis.delete(tx, branch.id, data_api.database_name)
    return respond({})


def _database(tx: Transaction, call: Call) -> tuple[Branch, Database]:
    _, branch = access.branch(tx, call)
    return branch, branch_objects.get(tx, Database, branch.id, call.path["database_name"])


def _find(tx: Transaction, call: Call) -> tuple[Branch, DataApi]:
    branch, database = _database(tx, call)
    found = data_apis.find(tx, branch.id, database.name)
    if found is None:
        raise ApiError(
            404,
            f"the Data API is not enabled for database {database.name!r} "
            f"of branch {branch.id!r}: create it first",
        )
    return branch, found


def _url(tx: Transaction, branch: Branch, data_api: DataApi) -> str:
    return hosts.url(tx, branch, "apirest", data_api.database_name) + "/rest/v1"
