"""Secrets in a text that is to be shown. Pure: no I/O."""

import re

from neonctl_async.models.secret import HIDDEN, Secret

SEARCHED = 16 * 1024
"""How much of a text is searched for secrets, and kept, in characters."""

_NAME = (
    r"(?:(?:[a-z0-9_-]{0,40}[_-])?(?:key|password|token|secret|uri|authorization|portal_url)"
    r"|[a-z0-9]{1,40}(?:Key|Password|Token|Secret|Uri))"
)
# Compiled by the first text that is searched: an import that does it takes a tenth longer.
_SECRETS = (
    # A member of a JSON object, perhaps within a JSON string, perhaps cut off in the middle.
    rf"""(["'](?i:{_NAME})\\*["']\s{{0,8}}:\s{{0,8}}\\*(["']))(?:(?!\2)[^\\]|\\.)*""",
    rf"""(\b(?i:{_NAME})=\\{{0,8}}(["']))(?:(?!\2)[^\\]|\\.)*""",
    rf"""(\b(?i:{_NAME})=)[^\s&"'\\]+""",
    r"""(\b(?i:authorization|x-api-key):\s{0,8}(?:(?i:basic|bearer)\s{1,8})?)[^\s"']+""",
    r"""(?m)(://[^\s:/@"]{0,256}:)[^\s@"/]{0,1024}(?=@|$)""",
    r"""(\b(?i:bearer\s{1,8}|napi_|npg_|neon_[a-z]{1,16}_key_))[\w.~+/-]+=*""",
)


def hide_secrets(text: str, own_key: Secret) -> str:
    """The beginning of ``text``, with what is or may be a key or a password made unreadable."""
    # Cut first, the text could end with most of the key.
    text = text.replace(own_key.reveal(), HIDDEN)[:SEARCHED]
    for pattern in _SECRETS:
        text = re.sub(pattern, rf"\1{HIDDEN}", text)
    return text
