"""Neon Auth of a branch: users, sign-in providers, domains and settings."""

from neonctl_async.resources.base import Resource


class Auth(Resource):
    """Neon Auth of a branch: users, sign-in providers, domains and settings."""
