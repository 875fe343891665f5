"""The settings of the suite with Django. ``BENCHMARK_PORT`` is the port of the peer's server."""

import os

SECRET_KEY = "only for tests"
INSTALLED_APPS = ["django.contrib.auth", "django.contrib.contenttypes"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
USE_TZ = True
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": "suite",
        "HOST": "127.0.0.1",
        "PORT": os.environ["BENCHMARK_PORT"],
        "USER": "postgres",
    }
}
