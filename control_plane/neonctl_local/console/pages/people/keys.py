"""Account settings > API keys: the personal keys of the signed-in person, and any new key."""

from typing import Final

from aiohttp import web

from neonctl_local.console.access.created_keys import CreatedKey
from neonctl_local.console.lists import ListQuery
from neonctl_local.console.pages.people.key_lists import Owner, find_key, list_keys
from neonctl_local.console.pages.people.records import NewKey
from neonctl_local.console.visits import Visit
from neonctl_local.errors import ApiError
from neonctl_local.server.application import BASE_PATH

REVOKED: Final = "API key revoked. Requests with it fail with status 401 from now on."


async def show(visit: Visit) -> web.StreamResponse:
    """``GET /console/account/keys``: the person's own keys, newest first."""
    keys = await visit.read(list_keys, _owner(visit), ListQuery.of(visit.query))
    return visit.page("keys.html", keys=keys)


async def show_new(visit: Visit, *, error: ApiError | None = None) -> web.StreamResponse:
    """``GET /console/account/keys/new``: the form that creates a personal key."""
    return visit.page("key_new.html", error=error)


async def create(visit: Visit) -> web.StreamResponse:
    """``POST /console/account/keys/new``: create a personal key."""
    try:
        new = await visit.call("POST /api_keys", NewKey, body={"key_name": visit.typed("name")})
    except ApiError as error:
        return await show_new(visit, error=error)
    return show_once(
        visit,
        CreatedKey(
            key_id=str(new.id),
            name=new.name,
            token=new.key,
            access="It has access to your own projects and to those of all your organizations.",
            example="/users/me",
            back="/account/keys",
        ),
    )


async def confirm_revocation(visit: Visit, *, error: ApiError | None = None) -> web.StreamResponse:
    """``GET /console/account/keys/{key_id}/revoke``: explain what revoking a key means."""
    key = await visit.read(find_key, _owner(visit), visit.path["key_id"])
    return visit.page("key_revoke.html", key=key, error=error)


async def revoke(visit: Visit) -> web.StreamResponse:
    """``POST /console/account/keys/{key_id}/revoke``: revoke a personal key."""
    try:
        await visit.call("DELETE /api_keys/{key_id}", dict, key_id=visit.path["key_id"])
    except ApiError as error:
        return await confirm_revocation(visit, error=error)
    return visit.redirect("/account/keys", REVOKED)


def show_once(visit: Visit, created: CreatedKey) -> web.Response:
    """Redirect to the page that shows a created key. The page shows the key only once."""
    visit.session.created_keys.keep(created)
    return visit.redirect(f"/created-keys/{created.key_id}")


async def show_created(visit: Visit) -> web.StreamResponse:
    """``GET /console/created-keys/{key_id}``: show a new key of this session, only once."""
    is_read = visit.request.method == "GET" and not visit.is_refresh
    created = visit.session.created_keys.take(visit.path["key_id"]) if is_read else None
    if created is None:
        notice = (
            "A key or secret is shown only once, right after its creation. "
            "If you have lost it, revoke it and create a new one."
        )
        return visit.redirect("/account/keys", notice)
    organizations = [one for one in visit.person.organizations if one.id == created.org_id]
    return visit.page(
        "key_created.html",
        created=created,
        organization=organizations[0] if organizations else None,
        server=f"{visit.request.scheme}://{visit.request.host}",
        api=f"{visit.request.scheme}://{visit.request.host}{BASE_PATH}",
    )


def _owner(visit: Visit) -> Owner:
    return Owner("user_id", visit.session.user_id)
