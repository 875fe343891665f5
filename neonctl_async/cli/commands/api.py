"""``neonctl-async api``."""

from typing import Annotated, Final
from urllib.parse import parse_qs

import msgspec
import typer

from neonctl_async.cli.command import command
from neonctl_async.cli.commands.local import require_server
from neonctl_async.cli.lists import LIST_OPTION
from neonctl_async.cli.options import or_unset, standard_input
from neonctl_async.cli.session import CommandSession

app: Final = typer.Typer()


def _parse_body(text: str) -> msgspec.Raw:
    """Return the JSON of ``--data``; ``-`` is standard input."""
    try:
        body = (standard_input() if text == "-" else text).encode()
        msgspec.json.decode(body)
    except (OSError, ValueError) as error:  # without the text, which may contain a password
        source = "standard input" if text == "-" else "the value"
        raise typer.BadParameter(
            f'{source} is not JSON: {error}; expected JSON such as \'{{"name": "preview"}}\''
        ) from None
    return msgspec.Raw(body)


def _list(ctx: typer.Context, path: str | None) -> None:
    """Print the endpoints at a path and below it, and exit. This needs no API key."""
    if path is not None and not ctx.resilient_parsing:
        require_server()
        from neonctl_async.cli.descriptions import endpoints_below

        names = list(endpoints_below(path))
        if not names:
            raise typer.BadParameter(f"no endpoint is at or below {path!r}: --list shows all")
        typer.echo("\n".join(names))
        raise typer.Exit


def _describe(ctx: typer.Context, endpoint: str | None) -> None:
    """Print the parameters and body fields of an endpoint, and exit."""
    if endpoint is not None and not ctx.resilient_parsing:
        require_server()
        from neonctl_async.cli.descriptions import described

        lines = list(described(endpoint))
        if not lines:
            raise typer.BadParameter(f"{endpoint!r} is no endpoint: --list shows all")
        typer.echo("\n".join(lines))
        raise typer.Exit


@command(
    app,
    "api",
    "Call an endpoint of the API, and print the JSON of its response, including secrets.\n\n"
    "Retries, the rate budget and errors work as in the other commands, but the call does not wait "
    "for operations.",
    example="api GET '/projects?limit=1'",
)
async def call_endpoint(
    session: CommandSession,
    method: Annotated[
        str,
        typer.Argument(
            metavar="METHOD", help="The HTTP method, e.g. GET or PATCH.", show_default=False
        ),
    ],
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH",
            help="The path below the base URL, and the query, e.g. '/projects?limit=10'.",
            show_default=False,
        ),
    ],
    data: Annotated[
        msgspec.Raw | None,
        typer.Option(
            "--data",
            metavar="JSON",
            parser=_parse_body,
            help="The body of the request, as JSON; - reads it from standard input.",
        ),
    ] = None,
    *,
    listed: Annotated[
        str | None,
        typer.Option(
            LIST_OPTION,
            metavar="[PATH]",
            is_eager=True,
            callback=_list,
            help="List all endpoints, or those at a path and below it, and exit.",
        ),
    ] = None,
    described: Annotated[
        str | None,
        typer.Option(
            "--describe",
            metavar="PATH",
            is_eager=True,
            callback=_describe,
            help="Show the parameters and the fields of the body of an endpoint, such as "
            "'POST /projects', or of all endpoints of a path, and exit.",
        ),
    ] = None,
) -> None:
    del listed, described  # their callbacks have exited
    path, _, query = path.partition("?")
    request = session.neon.request(
        method,
        path,
        query=parse_qs(query, keep_blank_values=True),
        body=or_unset(data),
    )
    response = await (request if method.upper() == "GET" else session.send(request))
    session.screen.show_json(response)
