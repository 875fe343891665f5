import pytest

from neonctl_async import NotFoundError
from neonctl_async.types import (
    BranchStorage,
    Bucket,
    BucketAccessLevel,
    BucketFolder,
    BucketObject,
    PresignedRequest,
)
from tests.models.records import AT_NOON, JsonObject, decode
from tests.models.services.storage_records import BUCKET, OBJECT, PRESIGNED, STORAGE
from tests.resources.wire import (
    Call,
    Response,
    no_content,
    record,
    record_in,
    records_in,
    responding_in_sequence,
    responding_with,
)

BRANCH = "/projects/p-1/branches/br-1"
BUCKETS = f"{BRANCH}/buckets"
OBJECTS = f"{BUCKETS}/images/objects"

CALLS = [
    Call(
        lambda neon: neon.storage.get("p-1", "br-1"),
        f"GET {BRANCH}/storage",
        record(BranchStorage, STORAGE),
    ),
    Call(
        lambda neon: neon.storage.list_buckets("p-1", "br-1"),
        f"GET {BUCKETS}",
        records_in("buckets", Bucket, BUCKET),
    ),
    Call(
        lambda neon: neon.storage.create_bucket("p-1", "br-1", name="images"),
        f"POST {BUCKETS}",
        record_in("bucket", Bucket, BUCKET),
        body={"name": "images"},
    ),
    Call(
        lambda neon: neon.storage.create_bucket(
            "p-1", "br-1", name="images", access_level="public_read"
        ),
        f"POST {BUCKETS}",
        record_in("bucket", Bucket, BUCKET),
        body={"name": "images", "access_level": "public_read"},
    ),
    Call(
        lambda neon: neon.storage.delete_bucket("p-1", "br-1", "images"),
        f"DELETE {BUCKETS}/images",
        no_content(),
    ),
    Call(
        lambda neon: neon.storage.presign(
            "p-1", "br-1", "images", "app/cat.png", operation="download"
        ),
        f"POST {OBJECTS}/app%2Fcat.png/presign",
        record(PresignedRequest, PRESIGNED),
        body={"operation": "download"},
    ),
    Call(
        lambda neon: neon.storage.presign(
            "p-1",
            "br-1",
            "images",
            "cat.png",
            operation="upload",
            content_type="image/png",
            expires_in_seconds=60,
        ),
        f"POST {OBJECTS}/cat.png/presign",
        record(PresignedRequest, PRESIGNED),
        body={"operation": "upload", "content_type": "image/png", "expires_in_seconds": 60},
    ),
    Call(
        lambda neon: neon.storage.delete_object("p-1", "br-1", "images", "app/cat.png"),
        f"DELETE {OBJECTS}/app%2Fcat.png",
        no_content(),
    ),
    Call(
        lambda neon: neon.storage.delete_objects("p-1", "br-1", "images", prefix="app/"),
        f"DELETE {BUCKETS}/images/objects-by-prefix",
        Response({"deleted": 3}, 3),
        query={"prefix": "app/"},
    ),
]


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_request_and_result(call: Call) -> None:
    await call.check()


def page(*objects: JsonObject, folders: tuple[str, ...] = (), **more: object) -> JsonObject:
    return {"folders": folders, "objects": objects, "prefix": "", "is_truncated": False, **more}


async def test_objects_of_all_pages_are_listed() -> None:
    other = {**OBJECT, "key": "app/dog.png"}
    first = page(OBJECT, is_truncated=True, next_cursor="a/b=")
    async with responding_in_sequence(first, page(other, next_cursor="")) as exchange:
        listing = exchange.neon.storage.list_objects(
            "p-1", "br-1", "images", prefix="app/", limit=1
        )
        assert [found.key async for found in listing] == ["app/cat.png", "app/dog.png"]
    assert [(sent.path, sent.query) for sent in exchange.all_sent] == [
        (OBJECTS, {"prefix": "app/", "limit": "1"}),
        (OBJECTS, {"prefix": "app/", "limit": "1", "cursor": "a/b="}),
    ]


async def test_cursor_of_the_last_page_is_not_sent() -> None:
    async with responding_with(page(OBJECT, next_cursor="again")) as exchange:
        assert len(await exchange.neon.storage.list_objects("p-1", "br-1", "images").collect()) == 1
    assert exchange.sent.query == {}


async def test_empty_page_does_not_end_a_truncated_list() -> None:
    empty = page(is_truncated=True, next_cursor="c-2")
    async with responding_in_sequence(empty, page(OBJECT)) as exchange:
        listing = exchange.neon.storage.list_objects("p-1", "br-1", "images")
        assert len(await listing.collect()) == 1


async def test_list_with_a_delimiter_contains_folders_before_objects() -> None:
    async with responding_with(page(OBJECT, folders=("app/avatars/",))) as exchange:
        found = await exchange.neon.storage.list_objects(
            "p-1", "br-1", "images", delimiter="/"
        ).collect()
    assert found == [BucketFolder(prefix="app/avatars/"), decode(BucketObject, OBJECT)]
    assert exchange.sent.query == {"delimiter": "/"}


async def test_download_yields_the_bytes_of_the_object() -> None:
    async with responding_with(body=b"meow") as exchange:
        async with exchange.neon.storage.download("p-1", "br-1", "images", "app/cat.png") as cat:
            assert [part async for part in cat] == [b"meow"]
        assert exchange.sent.path == f"{OBJECTS}/app%2Fcat.png/download"


@pytest.mark.parametrize("key", ["", "..", "a/../b"])
async def test_key_that_would_change_the_path_is_refused_before_the_request(key: str) -> None:
    async with responding_with() as exchange:
        with pytest.raises(ValueError, match=r"^object_key is "):
            await exchange.neon.storage.delete_object("p-1", "br-1", "images", key)
        with pytest.raises(ValueError, match=r"^object_key is "):
            exchange.neon.storage.download("p-1", "br-1", "images", key)
    assert exchange.server.received == []


async def test_error_for_a_branch_without_storage_contains_the_reason() -> None:
    body = {"code": "", "message": "not enabled", "reason": "org_not_entitled"}
    async with responding_with(body, 404) as exchange:
        with pytest.raises(NotFoundError, match="not enabled") as caught:
            await exchange.neon.storage.get("p-1", "br-1")
    assert caught.value.reason == "org_not_entitled"


def test_signature_of_a_presigned_url_is_hidden() -> None:
    presigned = decode(PresignedRequest, PRESIGNED)
    assert isinstance(presigned, PresignedRequest)
    assert "hunter2" not in f"{presigned!r}{presigned.to_dict()}"
    assert presigned.url.reveal() == PRESIGNED["url"]


def test_unknown_access_level_is_kept() -> None:
    bucket = decode(Bucket, {**BUCKET, "access_level": "team"})
    assert bucket == Bucket(
        name="images", access_level=BucketAccessLevel("team"), created_at=AT_NOON
    )
