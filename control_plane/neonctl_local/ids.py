"""Ids and secrets in Neon's formats. Path ids match ``^[a-z0-9-]{1,60}$``."""

import re
import secrets
import uuid
from base64 import urlsafe_b64encode
from hashlib import sha256
from typing import Final, Literal

KeyKind = Literal["personal", "organization", "project"]

_TOKEN_PREFIXES: Final[dict[KeyKind, str]] = {
    "personal": "neon_api_key_",
    "organization": "neon_org_key_",
    "project": "neon_project_key_",
}
CREDENTIAL_PREFIX: Final = "nak_live_"
"""The prefix of credential ids, which are not secret."""

_ADJECTIVES: Final = (
    "ancient autumn bitter bold broad calm cold cool crimson damp dark dawn dry empty falling "
    "floral fragrant frosty gentle green holy icy jolly late lingering little lively long misty "
    "morning muddy nameless noisy old orange patient plain polished proud purple quiet rapid red "
    "restless rough royal shiny shy silent small snowy soft solitary sparkling spring square "
    "steep still summer super sweet throbbing tight twilight wandering weathered white wild "
    "winter wispy withered yellow young"
).split()
_NOUNS: Final = (
    "art band bar base bird block boat bonus bread breeze brook bush butterfly cake cell cherry "
    "cloud credit darkness dawn dew disk dream dust feather field fire firefly flower fog forest "
    "frog frost glade glitter grass hall hat haze heart hill king lab lake leaf limit math meadow "
    "mode moon morning mountain mouse mud night paper pine poetry pond queen rain recipe resonance "
    "rice river salad scene sea shadow shape silence sky smoke snow snowflake sound star sun "
    "sunset surf term thunder tooth tree truth union unit violet voice water waterfall wave "
    "wildflower wind wood"
).split()


def uuid_text() -> str:
    """Return a random UUID, as used for operations, users, members and requests."""
    return str(uuid.uuid4())


def canonical(text: str) -> str:
    """Return a UUID in lower case, as it is stored, and any other string unchanged."""
    return text.lower() if _UUID.fullmatch(text) else text


def object_id(prefix: str = "") -> str:
    """Return a new id like ``late-frost-12345678``, after a prefix like ``br-``."""
    adjective, noun = secrets.choice(_ADJECTIVES), secrets.choice(_NOUNS)
    return f"{prefix}{adjective}-{noun}-{secrets.randbelow(90_000_000) + 10_000_000}"


def token(kind: KeyKind) -> str:
    """Return a new token for an API key: a prefix and 32 random hex digits."""
    return _TOKEN_PREFIXES[kind] + secrets.token_hex(16)


def invitation_secret() -> str:
    """Return a new secret for accepting an invitation. Logs mask it, as they mask keys."""
    return f"neon_invitation_key_{secrets.token_hex(16)}"


def password_seed() -> str:
    """Return a new seed for the password of a Postgres role, or for the secrets of a credential."""
    return secrets.token_hex(16)


def password(seed: str) -> str:
    """Return the password that is derived from a seed."""
    return f"npg_{urlsafe_b64encode(sha256(seed.encode()).digest()[:12]).decode()}"


def credential_id() -> str:
    """Return a new id for a credential: a prefix and 32 random hex digits."""
    return CREDENTIAL_PREFIX + secrets.token_hex(16)


def credential_token(short_id: str, seed: str) -> str:
    """Return the bearer token that is derived from the seed of a credential."""
    digest = urlsafe_b64encode(sha256(f"token {seed}".encode()).digest()).decode()
    return f"nt_live_{short_id}_{digest[:32]}"


def s3_secret_access_key(seed: str) -> str:
    """Return the secret key for S3 clients that is derived from the seed of a credential."""
    return f"nsk_live_{sha256(f'key {seed}'.encode()).hexdigest()}"


def lsn() -> str:
    """Return a random position in the write-ahead log."""
    return f"0/{secrets.randbelow(0x7FFFFFF) + 0x1000000:X}"


def mask(text: str) -> str:
    """Return ``text`` with its API keys and the secrets of credentials masked, for logs."""
    return _TOKEN.sub(r"\1\2**********", text)


_UUID: Final = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")


def _in_any_form(text: str) -> str:
    """Return a pattern for ``text`` in upper or lower case, even if it is percent-encoded."""
    return "".join(
        f"(?:{re.escape(character)}|%(?:25){{0,4}}(?:{ord(character):02x}|{ord(character.upper()):02x}))"
        for character in text
    )


_ENCODED_BYTE: Final = "%(?:25){0,4}[0-9a-f]{2}"
# The field "openapi_mode" is not a key.
_TOKEN: Final = re.compile(
    f"({_in_any_form('neon_')}(?:[a-z]|{_ENCODED_BYTE}){{1,16}}?{_in_any_form('_key_')}"
    f"|(?<!ope){_in_any_form('napi_')})(?:[0-9a-z]|{_ENCODED_BYTE})+"
    f"|({_in_any_form('nsk_live_')}|{_in_any_form('nt_live_')})(?:[0-9a-z_-]|{_ENCODED_BYTE})+",
    re.IGNORECASE,
)
