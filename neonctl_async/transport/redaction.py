"""Removal of secrets from text before it is shown. Pure: no I/O."""

import re

from neonctl_async.models.secret import HIDDEN, Secret

MAX_CHARACTERS = 16 * 1024
"""The maximum length of a redacted text, in characters. The rest is cut off."""

_NAME = (
    r"(?:(?:[a-z0-9_-]{0,40}[_-])?"
    r"(?:key|pass(?:word|wd|phrase)?|pwd|token|secret|uri|authorization|credential|signature"
    r"|portal_url)"
    r"|[a-z0-9]{1,40}(?:Key|Password|Token|Secret|Uri))"
)
# Compiled on first use: compiling here would make the import 10 % slower.
_SECRETS = (
    # A member of a JSON object, which may be inside a JSON string or cut off.
    rf"""(["'](?i:{_NAME})\\*["']\s{{0,8}}:\s{{0,8}}\\*(["']))(?:(?!\2)[^\\]|\\.)*""",
    rf"""(\b(?i:{_NAME})=\\{{0,8}}(["']))(?:(?!\2)[^\\]|\\.)*""",
    rf"""(\b(?i:{_NAME})=)[^\s&"'\\]+""",
    r"""(\b(?i:authorization|x-api-key):\s{0,8}(?:(?i:basic|bearer)\s{1,8})?)[^\s"']+""",
    r"""(?m)(://[^\s:/@"]{0,256}:)[^\s@"/]{0,1024}(?=@|$)""",
    r"""(\b(?i:bearer\s{1,8}|napi_|npg_|nsk_live_|nt_live_|neon_[a-z]{1,16}_key_))[\w.~+/-]+=*""",
)


def hide_secrets(text: str, *own_keys: Secret) -> str:
    """Return the start of ``text``, with ``***`` in place of possible keys and passwords."""
    # Replace before cutting: a cut key would not be found.
    for key in own_keys:
        text = text.replace(key.reveal(), HIDDEN)
    text = text[:MAX_CHARACTERS]
    for pattern in _SECRETS:
        text = re.sub(pattern, rf"\1{HIDDEN}", text)
    return text
