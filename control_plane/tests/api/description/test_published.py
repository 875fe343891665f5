"""The file with the published endpoints."""

from neonctl_local.api.description import published
from neonctl_local.api.description.published import Schema


def test_file_has_the_endpoints_and_every_schema_that_they_refer_to() -> None:
    description = published.description()
    assert len(description.endpoints) == 180
    assert description.endpoints["GET /projects/{project_id}/advisors"].stability == "alpha"
    assert description.endpoints["POST /api_keys"].body == Schema(ref="ApiKeyCreateRequest")


def test_file_names_its_source_and_license() -> None:
    description = published.description()
    assert "@neon/sdk" in description.source
    assert "@neondatabase/api-client" in description.restrictions
    assert description.license == published.LICENSE_FILE.name
    assert "The MIT License" in published.LICENSE_FILE.read_text(encoding="utf-8")
