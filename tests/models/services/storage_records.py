"""The smallest valid JSON of each record of object storage and functions."""

from neonctl_async.models.base import Model
from neonctl_async.models.services import functions, storage
from tests.models.records import NOON, JsonObject

STORAGE: JsonObject = {
    "enabled": True,
    "s3_endpoint": "https://br-1.storage.example.com",
    "region": "us-east-1",
    "force_path_style": True,
}
BUCKET: JsonObject = {"name": "images", "access_level": "public_read", "created_at": NOON}
OBJECT: JsonObject = {"key": "app/cat.png", "size": 5, "last_modified": NOON, "etag": "abc"}
PRESIGNED: JsonObject = {
    "url": "https://br-1.storage.example.com/images/cat.png?X-Amz-Signature=hunter2",
    "method": "PUT",
    "headers": {"Content-Type": "image/png"},
    "expires_at": NOON,
}
DEPLOYMENT: JsonObject = {
    "id": 7,
    "status": "building",
    "memory_mib": 256,
    "runtime": "nodejs24",
    "created_at": NOON,
}
FUNCTION: JsonObject = {
    "id": "fn-1",
    "slug": "hello",
    "name": "Hello",
    "invocation_url": "https://br-1-hello.functions.example.com/",
    "created_at": NOON,
}

MINIMAL: dict[type[Model], JsonObject] = {
    functions.FunctionDeployment: DEPLOYMENT,
    functions.FunctionDeploymentResponse: {"deployment": DEPLOYMENT},
    functions.FunctionResponse: {"function": FUNCTION},
    functions.FunctionsPage: {"functions": [FUNCTION]},
    functions.NeonFunction: FUNCTION,
    storage.BranchStorage: STORAGE,
    storage.Bucket: BUCKET,
    storage.BucketFolder: {"prefix": "app/"},
    storage.BucketObject: OBJECT,
    storage.BucketObjectsDeleted: {"deleted": 3},
    storage.BucketObjectsPage: {
        "folders": [],
        "objects": [OBJECT],
        "prefix": "",
        "is_truncated": False,
    },
    storage.BucketResponse: {"bucket": BUCKET},
    storage.BucketsResponse: {"buckets": [BUCKET]},
    storage.PresignedRequest: PRESIGNED,
}
"""The required fields of every record that responses contain."""
