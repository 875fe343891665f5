"""The domains to which Neon Auth redirects users."""

import pytest

from control_plane.tests.api.services.conftest import BETTER_AUTH
from control_plane.tests.client import Client

DOMAIN = BETTER_AUTH | {"domain": "https://example.com"}


async def test_domains_are_added_and_deleted(api: Client, auth_path: str) -> None:
    path = f"{auth_path}/domains"
    other = BETTER_AUTH | {"domain": "https://*.example.com"}
    assert await api.get(path) == {"domains": []}
    for domain in (DOMAIN, other):
        added = await api.send("POST", path, domain)
        assert (added.status, added.content) == (201, b"")
    assert await api.get(path) == {"domains": [DOMAIN, other]}
    missing = {"domain": "https://missing.example.com"}
    body = BETTER_AUTH | {"domains": [{"domain": DOMAIN["domain"]}, missing]}
    deleted = await api.send("DELETE", path, body)
    assert (deleted.status, deleted.content) == (200, b"")
    assert await api.get(path) == {"domains": [other]}


async def test_domain_of_another_provider_is_kept(api: Client, auth_path: str) -> None:
    path = f"{auth_path}/domains"
    assert (await api.send("POST", path, DOMAIN)).status == 201
    body = {"auth_provider": "stack", "domains": [{"domain": DOMAIN["domain"]}]}
    assert (await api.send("DELETE", path, body)).status == 200
    assert await api.get(path) == {"domains": [DOMAIN]}


async def test_adding_a_domain_twice_is_409(api: Client, auth_path: str) -> None:
    path = f"{auth_path}/domains"
    assert (await api.send("POST", path, DOMAIN)).status == 201
    await api.expect_error(409, "is already trusted", "POST", path, DOMAIN)


@pytest.mark.parametrize("domain", ["example.com", "", "https:// a", 3])
async def test_domain_without_a_scheme_is_400(api: Client, auth_path: str, domain: object) -> None:
    path = f"{auth_path}/domains"
    await api.expect_error(400, "domain", "POST", path, DOMAIN | {"domain": domain})
    body = BETTER_AUTH | {"domains": [{"domain": domain}]}
    await api.expect_error(400, "domain", "DELETE", path, body)
