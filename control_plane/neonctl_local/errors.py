"""The error responses of the API, as exceptions."""

from collections.abc import Mapping


class ApiError(Exception):
    """An error response: its status, and the ``message`` and ``code`` of its body.

    ``code`` is empty by default, as in most of Neon's error responses.
    """

    def __init__(
        self, status: int, message: str, *, code: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.headers: dict[str, str] = dict(headers or {})


class StorageFullError(ApiError):
    """A 507: the disk is full, and nothing was changed. Reads still succeed."""

    def __init__(self, message: str) -> None:
        super().__init__(507, message)


def invalid(message: str) -> ApiError:
    """Return a 400: the request is malformed."""
    return ApiError(400, message)


def unauthorized(message: str) -> ApiError:
    """Return a 401: the key is missing, unknown or revoked."""
    return ApiError(401, message, headers={"WWW-Authenticate": "Bearer"})


def forbidden(message: str) -> ApiError:
    """Return a 403: the key may read the object, but may not do this."""
    return ApiError(403, message)


def not_found(what: str, name: str) -> ApiError:
    """Return a 404: the object does not exist, or the key has no access to it."""
    return ApiError(404, f"{what} {name!r} not found")


def conflict(message: str) -> ApiError:
    """Return a 409: the name is taken, or the state of the object does not allow the request."""
    return ApiError(409, message)


def precondition_failed(message: str) -> ApiError:
    """Return a 412: a setting of the project forbids the request."""
    return ApiError(412, message)


def unprocessable(message: str) -> ApiError:
    """Return a 422: the rules of the API never allow the request."""
    return ApiError(422, message)


def locked(message: str) -> ApiError:
    """Return a 423: conflicting operations are running, and nothing was changed."""
    return ApiError(423, message)
