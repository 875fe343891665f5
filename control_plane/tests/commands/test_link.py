"""The command that prints a new link to the console."""

from control_plane.tests.client import Client
from control_plane.tests.commands.conftest import Shell
from control_plane.tests.console.visitor import visiting
from neonctl_local import LocalControlPlane


async def test_link_signs_in_once_and_each_is_new(api: Client, shell: Shell) -> None:
    link = await shell.expect("link")
    assert await shell.expect("link") != link
    async with visiting(api.control_plane) as visitor:
        await visitor.sign_in(link)
        assert (await visitor.get("")).status == 200
        await visitor.sign_out()
        used = await visitor.sign_in(link)
    assert used.status == 401
    assert "run `python -m neonctl_local link` for a new link" in used.text


async def test_key_of_an_organization_gets_no_link(api: Client, shell: Shell) -> None:
    org_id = api.control_plane.org_id
    path = f"/organizations/{org_id}/api_keys"
    shell.act_as((await api.request("POST", path, {"key_name": "scripts"}))["key"])
    result = await shell.run("link")
    assert (result.status, result.out) == (1, "")
    assert "only a personal API key" in result.err


async def test_server_without_a_console_says_so(shell: Shell) -> None:
    async with LocalControlPlane(console=False) as plain:
        shell.connect(plain.base_url, plain.api_key)
        result = await shell.run("link")
    assert "start it without --no-console" in result.err
