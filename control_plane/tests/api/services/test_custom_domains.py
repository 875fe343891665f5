"""Custom domains of a branch."""

import pytest

from control_plane.tests.client import Client, branch_path_of
from neonctl_local import Durations, ManualClock

DOMAIN = "api.example.com"
BODY = {"domain": DOMAIN, "entity_type": "function", "entity_id": "api"}


async def names(api: Client, branch_path: str, query: str = "") -> list[str]:
    page = await api.get(f"{branch_path}/custom-domains{query}")
    return [domain["domain"] for domain in page["custom_domains"]]


async def test_registered_domain_becomes_active_after_the_duration_of_an_operation(
    api: Client, clock: ManualClock, branch_path: str
) -> None:
    path = f"{branch_path}/custom-domains"
    reply = await api.send("POST", path, BODY | {"domain": "API.Example.com."})
    registered = reply.json
    assert reply.status == 201
    assert registered == BODY | {
        "cname_target": "fn-custom-domains.us-east-2.aws.neon.invalid",
        "status": "pending",
        "dns_status": "pending",
        "binding_status": "pending",
        "status_reason": "",
    }
    clock.advance(0.9)
    assert (await api.get(path))["custom_domains"] == [registered]
    clock.advance(0.1)
    active = {"status": "active", "dns_status": "ok", "binding_status": "present"}
    assert (await api.get(path))["custom_domains"] == [registered | active]


@pytest.mark.control_plane(durations=Durations(default=0))
async def test_domain_is_active_at_once_if_operations_take_no_time(
    api: Client, branch_path: str
) -> None:
    registered = await api.request("POST", f"{branch_path}/custom-domains", BODY)
    assert registered["status"] == "active"


async def test_domain_of_the_same_function_is_registered_once(
    api: Client, clock: ManualClock, branch_path: str
) -> None:
    path = f"{branch_path}/custom-domains"
    await api.request("POST", path, BODY)
    clock.advance(5)
    again = await api.request("POST", path, BODY)
    assert again["status"] == "active", "the registration started again"
    assert await names(api, branch_path) == [DOMAIN]


async def test_domain_of_another_function_or_branch_is_409(api: Client, branch_path: str) -> None:
    await api.request("POST", f"{branch_path}/custom-domains", BODY)
    other = branch_path_of(await api.branch(branch_path.split("/")[2], name="other"))
    for branch, entity_id in ((branch_path, "web"), (other, "api")):
        body = BODY | {"entity_id": entity_id}
        reply = await api.send("POST", f"{branch}/custom-domains", body)
        assert reply.status == 409
        assert reply.message == f"the domain {DOMAIN!r} is already registered: use another domain"
    assert await names(api, other) == []


async def test_deleted_domain_can_be_registered_on_another_branch(
    api: Client, branch_path: str
) -> None:
    await api.request("POST", f"{branch_path}/custom-domains", BODY)
    other = branch_path_of(await api.branch(branch_path.split("/")[2], name="other"))
    await api.expect_error(404, DOMAIN, "DELETE", f"{other}/custom-domains/{DOMAIN}")
    path = f"{branch_path}/custom-domains/API.Example.COM"
    assert (await api.send("DELETE", path)).status == 204
    await api.expect_error(404, "custom domain 'API.Example.COM' not found", "DELETE", path)
    await api.request("POST", f"{other}/custom-domains", BODY)
    assert await names(api, other) == [DOMAIN]


@pytest.mark.parametrize("deleted", ["branch", "project"])
async def test_domain_of_a_deleted_branch_or_project_can_be_registered_again(
    api: Client, clock: ManualClock, branch_path: str, deleted: str
) -> None:
    project = (await api.project())["project"]["id"]
    child = branch_path_of(await api.branch(project, name="child"))
    await api.request("POST", f"{child}/custom-domains", BODY)
    clock.advance(9)
    gone = child if deleted == "branch" else f"/projects/{project}"
    await api.request("DELETE", gone)
    await api.request("POST", f"{branch_path}/custom-domains", BODY)
    await api.request("POST", f"{gone}/recover")
    assert await names(api, branch_path) == [DOMAIN]
    assert await names(api, child) == []


async def test_pages_skip_and_repeat_no_domain(
    api: Client, clock: ManualClock, branch_path: str
) -> None:
    path = f"{branch_path}/custom-domains"
    for number in range(5):
        clock.advance(number % 2)
        await api.request("POST", path, BODY | {"domain": f"d{number}.example.com"})
    all_names = await names(api, branch_path)
    assert sorted(all_names) == [f"d{number}.example.com" for number in range(5)]
    listed: list[str] = []
    query = "?limit=2"
    while query:
        page = await api.get(f"{path}{query}")
        listed += [domain["domain"] for domain in page["custom_domains"]]
        cursor = page["pagination"].get("next")
        query = f"?limit=2&cursor={cursor}" if cursor else ""
    assert listed == all_names


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=x", "cursor=x"])
async def test_invalid_page_is_400(api: Client, branch_path: str, query: str) -> None:
    field = query.partition("=")[0]
    await api.expect_error(400, field, "GET", f"{branch_path}/custom-domains?{query}")


@pytest.mark.parametrize(
    ("domain", "reason"),
    [
        ("", "expected a domain name"),
        ("localhost", "expected a domain name"),
        ("-a.example.com", "expected a domain name"),
        ("a_b.example.com", "expected a domain name"),
        ("a..example.com", "expected a domain name"),
        ("\N{KELVIN SIGN}.example.com", "expected a domain name"),
        ("192.0.2.1", "expected a domain name"),
        (f"{'a' * 64}.example.com", "expected a domain name"),
        (f"{'a.' * 124}example.com", "expected a domain name"),
        ("api.example.com/path", "expected a domain name"),
        ("api.neon.tech", "use a domain of your own"),
        ("neon.tech", "use a domain of your own"),
        ("db.internal.", "use a domain of your own"),
    ],
)
async def test_domain_that_cannot_be_registered_is_400(
    api: Client, branch_path: str, domain: str, reason: str
) -> None:
    body = BODY | {"domain": domain}
    await api.expect_error(400, reason, "POST", f"{branch_path}/custom-domains", body)


@pytest.mark.parametrize("domain", ["my-neon.tech", "xn--bcher-kva.example", "1.a2"])
async def test_domain_of_a_customer_is_registered(
    api: Client, branch_path: str, domain: str
) -> None:
    await api.request("POST", f"{branch_path}/custom-domains", BODY | {"domain": domain})


async def test_entity_other_than_a_function_is_400_with_its_code(
    api: Client, branch_path: str
) -> None:
    body = BODY | {"entity_type": "bucket"}
    reply = await api.send("POST", f"{branch_path}/custom-domains", body)
    assert (reply.status, reply.json["code"]) == (400, "invalid_entity_type")
    assert "'bucket' is not supported: use 'function'" in reply.message


@pytest.mark.parametrize("slug", ["", "My Function", "-api"])
async def test_text_that_is_no_slug_is_an_unknown_function(
    api: Client, branch_path: str, slug: str
) -> None:
    body = BODY | {"entity_id": slug}
    await api.expect_error(404, "function", "POST", f"{branch_path}/custom-domains", body)


async def test_child_branch_does_not_inherit_domains(api: Client, branch_path: str) -> None:
    await api.request("POST", f"{branch_path}/custom-domains", BODY)
    child = branch_path_of(await api.branch(branch_path.split("/")[2], name="child"))
    assert await names(api, child) == []
