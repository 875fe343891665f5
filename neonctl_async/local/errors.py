"""The answers that refuse a request (section 7), as exceptions."""

from collections.abc import Mapping


class ApiError(Exception):
    """A refusal: its status, and the ``message`` and ``code`` of the error body.

    The platform's ``code`` is empty in most answers, as it is here unless given.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.headers: dict[str, str] = dict(headers or {})


def invalid(message: str) -> ApiError:
    """400: the request itself does not fit."""
    return ApiError(400, message)


def unauthorized(message: str) -> ApiError:
    """401: no key, an unknown key, or one that no longer works (section 5, rule 3)."""
    return ApiError(401, message, headers={"WWW-Authenticate": "Bearer"})


def forbidden(message: str) -> ApiError:
    """403: the key may see the object, but not do this to it."""
    return ApiError(403, message)


def not_found(what: str, name: str) -> ApiError:
    """404: it is not there, or the key does not reach it; an answer never says which."""
    return ApiError(404, f"{what} {name!r} not found")


def conflict(message: str) -> ApiError:
    """409: the name is taken, or the state of the object rules it out."""
    return ApiError(409, message)


def precondition_failed(message: str) -> ApiError:
    """412: a setting of the project rules it out."""
    return ApiError(412, message)


def unprocessable(message: str) -> ApiError:
    """422: the rules of the platform never allow it."""
    return ApiError(422, message)


def locked(message: str) -> ApiError:
    """423: conflicting operations run; nothing was changed."""
    return ApiError(423, message)
