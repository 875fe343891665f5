"""Users: list them, create one, and show the key of a new user."""

from aiohttp import web

from neonctl_local.console.access.created_keys import CreatedKey
from neonctl_local.console.lists import list_page
from neonctl_local.console.pages.people.keys import show_once
from neonctl_local.console.pages.people.records import User, UserCreated, Users
from neonctl_local.console.visits import Visit
from neonctl_local.errors import ApiError


async def show(visit: Visit) -> web.StreamResponse:
    """``GET /console/users``: all users, newest first."""
    users = (await visit.call("GET /local/v1/users", Users)).users
    return visit.page("users.html", users=list_page(users[::-1], visit.query, _texts))


async def show_new(visit: Visit, *, error: ApiError | None = None) -> web.StreamResponse:
    """``GET /console/users/new``: the form that creates a user."""
    return visit.page("user_new.html", error=error)


async def create(visit: Visit) -> web.StreamResponse:
    """``POST /console/users/new``: create a user with a personal key."""
    body = {"name": visit.typed("name"), "email": visit.typed("email").strip()}
    try:
        created = await visit.call("POST /local/v1/users", UserCreated, body=body)
    except ApiError as error:
        return await show_new(visit, error=error)
    return show_once(visit, new_user_key(created))


def new_user_key(created: UserCreated) -> CreatedKey:
    """Return the key of a new user, for the page that shows it."""
    return CreatedKey(
        key_id=str(created.api_key.id),
        name=created.api_key.name,
        token=created.api_key.key,
        access=_access(created),
        example="/users/me",
        back="/users",
        owner=created.user.name,
    )


def _access(created: UserCreated) -> str:
    if not created.organizations:
        return "It has access to the user's own projects. The user is in no organization yet."
    names = ", ".join(f"\u2068{one.name}\u2069" for one in created.organizations)
    return f"The user joined {names}. The key has access to their projects."


def _texts(user: User) -> list[str]:
    return [user.name, user.email, user.id]
