"""Posted forms."""

import hmac

from aiohttp import web

from neonctl_async.local.errors import ApiError


async def read_form(request: web.Request, csrf: str) -> dict[str, str]:
    """Return the fields of a posted form. Raise 403 if it is not a form of this session."""
    posted = await request.post()
    fields = {name: value for name, value in posted.items() if isinstance(value, str)}
    token = fields.pop("csrf", "")
    if not hmac.compare_digest(token.encode(), csrf.encode()):
        raise ApiError(403, "the form is out of date: open the page again and repeat the change")
    return fields
