"""Pages of lists of API keys."""

from collections.abc import Iterator

import pytest

from control_plane.tests.driven import DrivenControlPlane
from neonctl_local.console.lists import ListPage, ListQuery
from neonctl_local.console.pages.people.key_lists import (
    Key,
    Owner,
    count_keys_created_by,
    find_key,
    list_keys,
)
from neonctl_local.engine import accounts, api_keys
from neonctl_local.errors import ApiError


class Keys:
    """The keys of the first organization and of the first user."""

    def __init__(self, plane: DrivenControlPlane) -> None:
        self.plane = plane
        account = plane.account
        self.path = f"/organizations/{account.org_id}/api_keys"
        self.of_organization = Owner("org_id", account.org_id)
        self.of_user = Owner("user_id", account.user_id)
        self.creator = account.user_id

    def create(self, name: str, created_by: str = "") -> int:
        """Create an organization key. Return its id."""
        creator, org_id = created_by or self.creator, self.of_organization.id
        create = api_keys.create_key
        key, _ = self.plane.run(create, "organization", name, created_by=creator, org_id=org_id)
        return key.id

    def page(self, owner: Owner, search: str = "", number: int = 1) -> ListPage[Key]:
        return self.plane.run(list_keys, owner, ListQuery(search, number))

    def found(self, search: str = "") -> list[str]:
        """Return the names of the keys of the organization that a search finds."""
        return [key.name for key in self.page(self.of_organization, search).rows]


@pytest.fixture
def keys() -> Iterator[Keys]:
    with DrivenControlPlane(postgres=None) as plane:
        yield Keys(plane)


def test_keys_are_listed_newest_first_with_the_values_of_the_api(keys: Keys) -> None:
    for name in ("one", "two"):
        keys.create(name)
        keys.plane.clock.advance(1)
    shown = [
        {
            "id": key.id,
            "name": key.name,
            "created_at": key.created_at,
            "created_by": {"id": keys.creator, "name": key.creator, "image": ""},
            "last_used_at": key.last_used_at,
            "last_used_from_addr": key.last_used_from,
        }
        for key in keys.page(keys.of_organization).rows
    ]
    assert shown == keys.plane.request("GET", keys.path)


def test_search_finds_name_creator_id_and_project(keys: Keys) -> None:
    key_id = keys.create("Wide")
    bea = keys.plane.run(accounts.create_user, "Bea", "bea@example.com")
    keys.create("x", bea.id)
    project = {"project": {"org_id": keys.of_organization.id}}
    project_id = keys.plane.request("POST", "/projects", project)["project"]["id"]
    keys.plane.request("POST", keys.path, {"key_name": "scoped", "project_id": project_id})
    assert keys.found("wID") == ["Wide"]
    assert keys.found("be") == ["x"]
    assert keys.found(str(key_id)) == ["Wide"]
    assert keys.found(project_id) == ["scoped"]
    assert keys.found("nothing") == []
    assert (keys.page(keys.of_organization, "wide").found, len(keys.found())) == (1, 3)


@pytest.mark.parametrize("name", ["100%", "a_b", r"c:\d"])
def test_search_takes_wildcards_literally(keys: Keys, name: str) -> None:
    keys.create(name)
    keys.create("100 axb c:xd")
    assert keys.found(name) == [name]


def test_page_after_the_last_is_the_last(keys: Keys) -> None:
    for number in range(51):
        keys.plane.run(api_keys.create_user_key, keys.creator, f"job {number}")
    first, last, none = (keys.page(keys.of_user, number=number) for number in (1, 2, 9))
    assert [len(page.rows) for page in (first, last)] == [50, 2]
    assert last == none
    assert (first.total, last.rows[-1].name) == (52, "first key")


def test_revoked_keys_are_not_found(keys: Keys) -> None:
    key_id = keys.create("wide")
    owner = keys.of_organization
    assert keys.plane.run(find_key, owner, str(key_id)).name == "wide"
    keys.plane.request("DELETE", f"{keys.path}/{key_id}")
    assert (keys.found(), keys.plane.run(count_keys_created_by, owner, keys.creator)) == ([], 0)
    with pytest.raises(ApiError, match="not found"):
        keys.plane.run(find_key, owner, str(key_id))


@pytest.mark.parametrize("key_id", ["", "x", "²", "-1", "0", "9" * 30, "1 OR 1"])
def test_text_that_is_no_id_is_not_found(keys: Keys, key_id: str) -> None:
    with pytest.raises(ApiError, match="not found"):
        keys.plane.run(find_key, keys.of_user, key_id)


def test_key_of_another_owner_is_not_found(keys: Keys) -> None:
    key_id = keys.create("wide")
    with pytest.raises(ApiError, match="not found"):
        keys.plane.run(find_key, keys.of_user, str(key_id))


def test_keys_are_counted_by_creator(keys: Keys) -> None:
    keys.create("wide")
    count = keys.plane.run(count_keys_created_by, keys.of_organization, keys.creator)
    assert count == 1
    assert keys.plane.run(count_keys_created_by, keys.of_organization, "nobody") == 0
