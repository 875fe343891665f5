"""The smallest valid JSON of each record of the object storage and the functions of a branch."""

from neonctl_async.models.base import Model
from neonctl_async.models.services import functions, storage
from tests.models.records import NOON, JsonObject

BUCKET: JsonObject = {"name": "photos", "access_level": "private", "created_at": NOON}
BUCKET_OBJECT: JsonObject = {"key": "a.png", "size": 7, "last_modified": NOON, "etag": "e1"}
DEPLOYMENT: JsonObject = {
    "id": 3,
    "status": "completed",
    "memory_mib": 512,
    "runtime": "nodejs24",
    "created_at": NOON,
}
FUNCTION: JsonObject = {
    "id": "fn-1",
    "slug": "resize",
    "name": "resize",
    "invocation_url": "https://resize.example.com/",
    "created_at": NOON,
}

MINIMAL: dict[type[Model], JsonObject] = {
    functions.FunctionDeployment: DEPLOYMENT,
    functions.FunctionDeploymentResponse: {"deployment": DEPLOYMENT},
    functions.FunctionResponse: {"function": FUNCTION},
    functions.FunctionsPage: {"functions": [FUNCTION]},
    functions.NeonFunction: FUNCTION,
    storage.BranchStorage: {
        "enabled": True,
        "s3_endpoint": "https://s3.example.com",
        "region": "us-east-1",
        "force_path_style": True,
    },
    storage.Bucket: BUCKET,
    storage.BucketFolder: {"prefix": "avatars/"},
    storage.BucketObject: BUCKET_OBJECT,
    storage.BucketObjectsDeleted: {"deleted": 2},
    storage.BucketObjectsPage: {
        "folders": [],
        "objects": [BUCKET_OBJECT],
        "prefix": "",
        "is_truncated": False,
    },
    storage.BucketResponse: {"bucket": BUCKET},
    storage.BucketsResponse: {"buckets": [BUCKET]},
    storage.PresignedRequest: {
        "url": "https://s3.example.com/a.png?signature=1",
        "method": "GET",
        "headers": {},
        "expires_at": NOON,
    },
}
"""The required fields of every record that responses contain."""
