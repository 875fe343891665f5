"""The settings with which Django's own tests run. SUITE_URI names the server."""

import os

from neonctl_async.types import ConnectionUri

_uri = ConnectionUri(os.environ["SUITE_URI"])
# Both are names of databases that the tests create.
DATABASES = {
    alias: {
        **_uri.django,
        "NAME": name,
        # As Django documents it for poolers that share sessions between transactions.
        "DISABLE_SERVER_SIDE_CURSORS": _uri.pooled,
    }
    for alias, name in (("default", "suite"), ("other", "suite_other"))
}
SECRET_KEY = "only for tests"  # noqa: S105 - Django requires one
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
