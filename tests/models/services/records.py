"""The smallest valid JSON of each record of the services of a branch."""

from neonctl_async.models.base import Model
from tests.models.records import JsonObject
from tests.models.services import auth_records

MINIMAL: dict[type[Model], JsonObject] = {
    **auth_records.MINIMAL,
}
"""The required fields of every record that responses contain."""

REQUEST_ONLY: list[type[Model]] = []
"""The records that only requests contain."""
