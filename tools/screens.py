"""Takes pictures of the command line in tmux and writes them as SVG: ``make pictures``."""

import asyncio
import io
import itertools
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

from neonctl_async import EndpointSpec, NeonClient
from neonctl_local import Durations, LocalControlPlane

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
HEIGHT = 40
NUMBERS = itertools.count()
WIDTH, WIDE = 80, 120
"""The usual width of a terminal, in columns, and that of a wide one."""
DURATIONS = Durations(default=1.0, by_action={"create_branch": 1.9})


class Screen(NamedTuple):
    """A command, and the seconds until its picture is taken (default: until it has finished)."""

    command: str
    after: float | None = None
    is_list: bool = False
    """Lists show more on a wide terminal, so they have a second picture."""


SCREENS = {
    "help": Screen("neonctl-async --help"),
    "projects": Screen("neonctl-async projects list", is_list=True),
    "branches": Screen("neonctl-async branches list", is_list=True),
    "operations": Screen("neonctl-async operations list", is_list=True),
    "demo": Screen("neonctl-async demo"),
    "progress": Screen("neonctl-async demo --no-postgres --seconds 3", after=13.5),
}


async def main() -> None:
    """Take all pictures."""
    async with (
        LocalControlPlane(durations=DURATIONS) as control_plane,
        NeonClient(control_plane.api_key, base_url=control_plane.base_url) as neon,
    ):
        environment = {
            **os.environ,
            "NEON_API_KEY": control_plane.api_key,
            "NEON_API_HOST": control_plane.base_url,
            "NEON_PROJECT_ID": await populate(control_plane, neon),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "TZ": "UTC",
        }
        PICTURES.mkdir(exist_ok=True)
        for name, screen in SCREENS.items():
            pictures = {name: WIDTH, f"{name}-{WIDE}": WIDE} if screen.is_list else {name: WIDTH}
            for picture, width in pictures.items():
                content = await capture(screen, width, environment)
                svg = render(picture, content, width)
                (PICTURES / f"{picture}.svg").write_text(svg, encoding="utf-8")


async def populate(control_plane: LocalControlPlane, neon: NeonClient) -> str:
    """Create projects. Return the id of a project with operations in every kind of status."""
    for name in ("billing", "search"):
        await neon.projects.create(name=name, wait=True)
    shop = (await neon.projects.create(name="shop", wait=True)).project.id
    compute = [EndpointSpec(type="read_write")]
    await neon.branches.create(shop, name="preview-1", endpoints=compute, wait=True)
    await control_plane.fail_next("create_branch", error="the parent's data could not be read")
    await neon.branches.create(shop, name="preview-2")
    await asyncio.sleep(2 * DURATIONS.default)
    await neon.branches.create(shop, name="preview-3", endpoints=compute)
    return shop


async def capture(screen: Screen, width: int, environment: Mapping[str, str]) -> str:
    """Run a command in tmux. Return the content of the terminal, with its colour codes."""
    # A server that was killed may still use its socket, so each picture has its own.
    server = ("tmux", "-L", f"neonctl-async-{os.getpid()}-{next(NUMBERS)}")
    signal = shlex.join((*server, "wait-for", "-S", "done"))
    script = f"printf '$ %s\\n' '{screen.command}'; {screen.command}; {signal}; sleep 60"
    size = ("-x", str(width), "-y", str(HEIGHT))
    await tmux(
        server, "-f", os.devnull, "new-session", "-d", *size, "sh", "-c", script, env=environment
    )
    try:
        if screen.after is None:
            await tmux(server, "wait-for", "done")
        else:
            await asyncio.sleep(screen.after)
        return await tmux(server, "capture-pane", "-e", "-p")
    finally:
        await tmux(server, "kill-server")


async def tmux(server: Sequence[str], *arguments: str, env: Mapping[str, str] | None = None) -> str:
    """Run a command of tmux on this server. Return its output."""
    process = await asyncio.create_subprocess_exec(
        *server, *arguments, env=env, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"tmux {arguments[0]} exited with status {process.returncode}")
    return output.decode()


def render(name: str, content: str, width: int) -> str:
    """Return an SVG of a terminal. It uses the fonts of the machine and loads none."""
    console = Console(record=True, width=width, file=io.StringIO())
    console.print(Text.from_ansi(content.rstrip()))
    console.print()  # the picture cuts off the lower edge of the last line
    svg = console.export_svg(title="neonctl-async", unique_id=name)
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


if __name__ == "__main__":
    asyncio.run(main())
