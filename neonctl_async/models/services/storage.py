"""Object storage of a branch: buckets and their objects."""

from neonctl_async.models.base import Model, OpenEnum, Pagination, Timestamp
from neonctl_async.models.secret import Secret


class BranchStorage(Model, kw_only=True):
    """The object storage of a branch, which is compatible with S3."""

    enabled: bool
    """True if the object storage can be used now."""
    s3_endpoint: str
    """The URL for S3 clients."""
    region: str
    """The AWS region for S3 clients, such as ``us-east-1``."""
    force_path_style: bool
    """True if S3 clients have to put the bucket's name in the path of a URL."""


class BucketAccessLevel(OpenEnum):
    """What anyone may do with the objects of a bucket, without authentication."""

    PRIVATE = "private"
    PUBLIC_READ = "public_read"
    """Anyone who knows an object's key can read the object, but cannot do anything else."""


class Bucket(Model, kw_only=True):
    """A bucket of a branch, or of one of its ancestors."""

    name: str
    """Unique within the branch."""
    access_level: BucketAccessLevel
    created_at: Timestamp
    """The time at which the bucket was created, on the branch or on the ancestor."""


class BucketObject(Model, kw_only=True):
    """An object of a bucket."""

    key: str
    size: int
    """In bytes."""
    last_modified: Timestamp
    etag: str
    """A hash of the content."""


class BucketFolder(Model, kw_only=True):
    """The common prefix of objects that a list with a ``delimiter`` groups together."""

    prefix: str
    """The prefix with a trailing delimiter, such as ``app/avatars/``."""


class PresignedRequest(Model, kw_only=True):
    """An HTTP request that reads or writes an object, without an API key."""

    url: Secret
    """The URL with its signature. Anyone who has it can send the request."""
    method: str
    """``PUT`` for an upload, ``GET`` for a download."""
    headers: dict[str, str]
    """The headers to send, unchanged."""
    expires_at: Timestamp
    """The time at which the URL expires."""


class BucketResponse(Model, kw_only=True):
    """A response that contains one bucket."""

    bucket: Bucket


class BucketsResponse(Model, kw_only=True):
    """The response to ``GET /projects/{project_id}/branches/{branch_id}/buckets``."""

    buckets: list[Bucket]


class BucketObjectsPage(Model, kw_only=True):
    """A page of the objects and folders of a bucket."""

    folders: list[str]
    objects: list[BucketObject]
    prefix: str
    next_cursor: str | None = None
    is_truncated: bool

    @property
    def items(self) -> list[BucketObject | BucketFolder]:
        """The folders, and then the objects."""
        return [*(BucketFolder(prefix=folder) for folder in self.folders), *self.objects]

    @property
    def pagination(self) -> Pagination | None:
        """The cursor of the next page, in the form that other endpoints use."""
        return Pagination(cursor=self.next_cursor) if self.is_truncated else None


class BucketObjectsDeleted(Model, kw_only=True):
    """The number of objects that were deleted."""

    deleted: int
