"""Functions of a branch, and their deployments."""

import asyncio
import os
from collections.abc import Mapping
from operator import attrgetter
from pathlib import Path
from typing import Literal

from msgspec import UNSET, UnsetType

from neonctl_async._internal import kind_of
from neonctl_async.models.base import Empty
from neonctl_async.models.secret import Secret, SentSecret
from neonctl_async.models.services.functions import (
    FunctionDeployment,
    FunctionDeploymentResponse,
    FunctionResponse,
    FunctionsPage,
    NeonFunction,
)
from neonctl_async.pagination import Paginator
from neonctl_async.resources.base import Resource, check_within
from neonctl_async.transport.encoding import File, Form, encode_json
from neonctl_async.transport.protocol import request

_FUNCTIONS = "/projects/{project_id}/branches/{branch_id}/functions"
_FUNCTION = f"{_FUNCTIONS}/{{slug}}"

MAX_FUNCTIONS = 1000


class Functions(Resource):
    """Functions of a branch, and their deployments.

    A ``slug`` is the name of a function in its URL: 1 to 20 lowercase letters and digits.
    """

    def list(
        self, project_id: str, branch_id: str, *, limit: int | UnsetType = UNSET
    ) -> Paginator[NeonFunction]:
        """List the functions of a branch.

        ``limit`` is the page size, 1 to 1000. Beta: Neon may change this endpoint.
        """
        check_within("limit", limit, 1, MAX_FUNCTIONS)
        first = request(
            "GET", _FUNCTIONS, FunctionsPage, project_id, branch_id, query={"limit": limit}
        )
        return self._paginate(first, lambda page: page.functions, attrgetter("id"))

    async def get(self, project_id: str, branch_id: str, slug: str) -> NeonFunction:
        """Return a function. Beta: Neon may change this endpoint."""
        response = await self._send("GET", _FUNCTION, FunctionResponse, project_id, branch_id, slug)
        return response.function

    async def update(
        self, project_id: str, branch_id: str, slug: str, *, name: str | None
    ) -> NeonFunction:
        """Change the display name of a function. None removes the name.

        Raises NotFoundError for a function that the branch inherits: rename it on its own branch.

        Beta: Neon may change this endpoint.
        """
        response = await self._send(
            "PATCH", _FUNCTION, FunctionResponse, project_id, branch_id, slug, body={"name": name}
        )
        return response.function

    async def delete(self, project_id: str, branch_id: str, slug: str) -> None:
        """Delete a function. Beta: Neon may change this endpoint."""
        await self._send("DELETE", _FUNCTION, Empty, project_id, branch_id, slug)

    async def deploy(
        self,
        project_id: str,
        branch_id: str,
        slug: str,
        *,
        zip: bytes | str | os.PathLike[str] | UnsetType = UNSET,
        environment: Mapping[str, str | Secret] | UnsetType = UNSET,
        runtime: Literal["nodejs24"] | UnsetType = UNSET,
    ) -> FunctionDeployment:
        """Deploy code or settings to a function. The first deployment creates the function.

        ``zip`` is the ZIP archive of the source code, as bytes or as the path of a file. The first
        deployment requires it. ``environment`` sets environment variables; an empty value removes a
        variable. Neon keeps the values of arguments that you leave out, and rejects a call that
        sets nothing.

        The result is a deployment that is not built yet: read ``current_deployment`` with
        :meth:`get` until its ``status`` is ``completed`` or ``failed``. The archive is held in
        memory, and the client's timeouts apply to sending it. Beta: Neon may change this endpoint.
        """
        fields: dict[str, str | Secret | File] = {}
        if not isinstance(runtime, UnsetType):
            fields["runtime"] = runtime
        if not isinstance(environment, UnsetType):
            environment = _hidden(environment)
            fields["environment"] = _json(environment)
        if not isinstance(zip, UnsetType):
            fields["zip"] = File("function.zip", await _content(zip), "application/zip")
        response = await self._send(
            "POST",
            f"{_FUNCTION}/deployments",
            FunctionDeploymentResponse,
            project_id,
            branch_id,
            slug,
            body=Form(fields),
        )
        return response.deployment


async def _content(zip: bytes | str | os.PathLike[str]) -> bytes:
    if isinstance(zip, bytes):
        return zip
    if not isinstance(zip, str | os.PathLike):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without a type checker
        raise TypeError(f"zip is {kind_of(zip)}: expected bytes or the path of a file")
    return await asyncio.to_thread(_read, Path(zip))


def _read(path: Path) -> bytes:
    return path.read_bytes()


def _hidden(environment: Mapping[str, str | Secret]) -> Mapping[str, Secret]:
    """Return an environment whose values tracebacks do not show."""
    if not isinstance(environment, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without a type checker
        # The value may be a secret.
        raise TypeError(f"environment is {kind_of(environment)}: expected a mapping")
    return {
        name: SentSecret(value.reveal() if isinstance(value, Secret) else value)
        for name, value in environment.items()
    }


def _json(environment: Mapping[str, Secret]) -> Secret:
    return Secret(encode_json(environment).decode())
