"""Object storage of a branch: buckets and their objects."""

from contextlib import AbstractAsyncContextManager
from typing import Literal, TypeAlias, overload

from msgspec import UNSET, UnsetType

from neonctl_async.models.base import Empty
from neonctl_async.models.services.storage import (
    BranchStorage,
    Bucket,
    BucketFolder,
    BucketObject,
    BucketObjectsDeleted,
    BucketObjectsPage,
    BucketResponse,
    BucketsResponse,
    PresignedRequest,
)
from neonctl_async.pagination import Paginator
from neonctl_async.resources.base import Resource, check_within, drop_unset
from neonctl_async.transport.download import Download
from neonctl_async.transport.protocol import request

_BRANCH = "/projects/{project_id}/branches/{branch_id}"
_BUCKETS = f"{_BRANCH}/buckets"
_BUCKET = f"{_BUCKETS}/{{bucket_name}}"
_OBJECTS = f"{_BUCKET}/objects"
_OBJECT = f"{_OBJECTS}/{{object_key}}"

MAX_OBJECTS = 1000

AccessLevel: TypeAlias = Literal["private", "public_read"]


class Storage(Resource):
    """Object storage of a branch: buckets and their objects.

    A branch also shows the buckets and objects of its ancestors. The key of an object may contain
    ``/``. A key with a ``.`` or ``..`` segment raises ValueError, because a proxy might change the
    path. Use an S3 client for such an object.
    """

    async def get(self, project_id: str, branch_id: str) -> BranchStorage:
        """Return the addresses of a branch's object storage.

        Raises NotFoundError, with a ``reason``, if the branch has no object storage. Beta: Neon
        may change this endpoint.
        """
        return await self._send("GET", f"{_BRANCH}/storage", BranchStorage, project_id, branch_id)

    async def list_buckets(self, project_id: str, branch_id: str) -> list[Bucket]:
        """Return the buckets of a branch. Beta: Neon may change this endpoint."""
        response = await self._send("GET", _BUCKETS, BucketsResponse, project_id, branch_id)
        return response.buckets

    async def create_bucket(
        self,
        project_id: str,
        branch_id: str,
        *,
        name: str,
        access_level: AccessLevel | UnsetType = UNSET,
    ) -> Bucket:
        """Create a bucket.

        With the ``access_level`` ``public_read``, anyone who knows the key of an object can read
        it. Neon's default is ``private``. Beta: Neon may change this endpoint.
        """
        body = drop_unset(name=name, access_level=access_level)
        response = await self._send(
            "POST", _BUCKETS, BucketResponse, project_id, branch_id, body=body
        )
        return response.bucket

    async def delete_bucket(self, project_id: str, branch_id: str, bucket_name: str) -> None:
        """Delete a bucket. Beta: Neon may change this endpoint."""
        await self._send("DELETE", _BUCKET, Empty, project_id, branch_id, bucket_name)

    @overload
    def list_objects(
        self,
        project_id: str,
        branch_id: str,
        bucket_name: str,
        *,
        prefix: str | UnsetType = ...,
        limit: int | UnsetType = ...,
    ) -> Paginator[BucketObject]: ...
    @overload
    def list_objects(
        self,
        project_id: str,
        branch_id: str,
        bucket_name: str,
        *,
        prefix: str | UnsetType = ...,
        delimiter: str | UnsetType,
        limit: int | UnsetType = ...,
    ) -> Paginator[BucketObject | BucketFolder]: ...
    def list_objects(
        self,
        project_id: str,
        branch_id: str,
        bucket_name: str,
        *,
        prefix: str | UnsetType = UNSET,
        delimiter: str | UnsetType = UNSET,
        limit: int | UnsetType = UNSET,
    ) -> Paginator[BucketObject] | Paginator[BucketObject | BucketFolder]:
        """List the objects of a bucket whose keys start with ``prefix``.

        With a ``delimiter``, usually ``/``, the list shows one level. A :class:`BucketFolder`
        stands for all objects with the same key up to the first delimiter after ``prefix``.
        ``limit`` is the page size, 1 to 1000; Neon's default is 1000. Beta: Neon may change this
        endpoint.
        """
        check_within("limit", limit, 1, MAX_OBJECTS)
        first = request(
            "GET",
            _OBJECTS,
            BucketObjectsPage,
            project_id,
            branch_id,
            bucket_name,
            query={"prefix": prefix, "delimiter": delimiter, "limit": limit},
        )
        return self._paginate(
            first,
            lambda page: page.items,
            _identity,
            is_truncated=lambda page: page.is_truncated,
        )

    def download(
        self, project_id: str, branch_id: str, bucket_name: str, object_key: str
    ) -> AbstractAsyncContextManager[Download]:
        """Download an object of any size. Use it with ``async with``.

        ::

            async with neon.storage.download(project_id, branch_id, "images", "a.png") as download:
                await download.save("a.png")

        Entering the block sends the request, with the usual retries and errors. Leaving it closes
        the connection, even if the object was not read to the end. ``max_response_bytes`` does not
        apply. Beta: Neon may change this endpoint.
        """
        return self._runner.download(
            request(
                "GET",
                f"{_OBJECT}/download",
                Download,
                project_id,
                branch_id,
                bucket_name,
                object_key,
            )
        )

    async def presign(
        self,
        project_id: str,
        branch_id: str,
        bucket_name: str,
        object_key: str,
        *,
        operation: Literal["upload", "download"],
        content_type: str | UnsetType = UNSET,
        expires_in_seconds: int | UnsetType = UNSET,
    ) -> PresignedRequest:
        """Return an HTTP request that uploads or downloads an object without the API key.

        Send the request with any HTTP client, but never with the API key. ``content_type`` is the
        ``Content-Type`` of an upload. The URL is valid for ``expires_in_seconds``, at most 604,800;
        Neon's default is 900. Beta: Neon may change this endpoint.
        """
        body = drop_unset(
            operation=operation, content_type=content_type, expires_in_seconds=expires_in_seconds
        )
        return await self._send(
            "POST",
            f"{_OBJECT}/presign",
            PresignedRequest,
            project_id,
            branch_id,
            bucket_name,
            object_key,
            body=body,
        )

    async def delete_object(
        self, project_id: str, branch_id: str, bucket_name: str, object_key: str
    ) -> None:
        """Delete an object. Beta: Neon may change this endpoint."""
        await self._send("DELETE", _OBJECT, Empty, project_id, branch_id, bucket_name, object_key)

    async def delete_objects(
        self, project_id: str, branch_id: str, bucket_name: str, *, prefix: str
    ) -> int:
        """Delete all objects whose keys start with ``prefix``, and return their number.

        ``prefix`` has to end with ``/``. Objects that the branch inherits from an ancestor are not
        deleted. Beta: Neon may change this endpoint.
        """
        response = await self._send(
            "DELETE",
            f"{_BUCKET}/objects-by-prefix",
            BucketObjectsDeleted,
            project_id,
            branch_id,
            bucket_name,
            query={"prefix": prefix},
        )
        return response.deleted


def _identity(item: BucketObject | BucketFolder) -> tuple[type, str]:
    return type(item), item.prefix if isinstance(item, BucketFolder) else item.key
