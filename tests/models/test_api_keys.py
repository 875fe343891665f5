import pytest

from neonctl_async.types import ApiKey, ApiKeyCreated, ApiKeyCreator, ApiKeyRevoked
from tests.models.records import AT_NOON, NOON, decode


def test_created_key_needs_only_id_and_token() -> None:
    created = decode(ApiKeyCreated, {"id": 7, "key": "napi_token"})
    assert (created.id, created.key.reveal()) == (7, "napi_token")
    assert (created.name, created.created_at, created.created_by) == (None, None, None)
    assert created.project_id is None


def test_repr_hides_the_token() -> None:
    created = decode(ApiKeyCreated, {"id": 7, "key": "napi_token", "name": "ci"})
    assert "napi_token" not in f"{created} {created!r}"
    assert "'ci'" in repr(created)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("user_01h84bfr2npa81rn8h8jzz8mx4", "user_01h84bfr2npa81rn8h8jzz8mx4"),
        (
            {"id": "u-1", "name": "Ada", "image": "https://example.com/a.png"},
            ApiKeyCreator(id="u-1", name="Ada", image="https://example.com/a.png"),
        ),
        ({"id": "u-1"}, ApiKeyCreator(id="u-1")),
        (None, None),
    ],
)
def test_creator_is_an_object_or_an_id(content: object, expected: object) -> None:
    assert decode(ApiKey, {"id": 1, "name": "ci", "created_by": content}).created_by == expected


def test_unused_key_has_no_last_use() -> None:
    content = {"id": 1, "name": "ci", "last_used_at": None, "last_used_from_addr": ""}
    listed = decode(ApiKey, content)
    assert (listed.last_used_at, listed.last_used_from_addr) == (None, "")
    revoked = decode(ApiKeyRevoked, {**content, "revoked": True})
    assert (revoked.last_used_at, revoked.last_used_from_addr) == (None, "")


def test_used_key_has_a_last_use() -> None:
    content = {"id": 1, "name": "ci", "created_at": NOON, "last_used_at": NOON, "project_id": "p-1"}
    key = decode(ApiKey, content)
    assert key.created_at == key.last_used_at == AT_NOON
    assert key.project_id == "p-1"
