"""The account that a key belongs to."""

from neonctl_async.models.base import Model, OpenEnum
from neonctl_async.models.billing import BillingAccount


class IdentityProvider(OpenEnum):
    """Who vouches for an account."""

    GITHUB = "github"
    GOOGLE = "google"
    HASURA = "hasura"
    MICROSOFT = "microsoft"
    MICROSOFTV2 = "microsoftv2"
    VERCELMP = "vercelmp"
    KEYCLOAK = "keycloak"


class AuthMethod(OpenEnum):
    """How a request was authenticated."""

    KEYCLOAK = "keycloak"
    SESSION_COOKIE = "session_cookie"
    API_KEY_USER = "api_key_user"
    API_KEY_ORG = "api_key_org"
    OAUTH = "oauth"


class AuthDetails(Model, kw_only=True):
    """Whose the key of a request is, and of which kind."""

    account_id: str
    auth_method: AuthMethod
    auth_data: str | None = None


class AuthAccount(Model, kw_only=True):
    """An account elsewhere that a user signs in with."""

    email: str | None = None
    provider: IdentityProvider | None = None
    name: str | None = None
    login: str | None = None
    image: str | None = None


class CurrentUser(Model, kw_only=True):
    """The user whose key it is, and the limits of their account.

    ``active_seconds_limit`` and ``compute_seconds_limit`` are in seconds,
    ``max_autoscaling_limit`` in compute units.
    """

    id: str
    email: str
    name: str | None = None
    last_name: str | None = None
    login: str | None = None
    image: str | None = None
    plan: str | None = None
    auth_accounts: list[AuthAccount] = []
    billing_account: BillingAccount | None = None
    projects_limit: int | None = None
    branches_limit: int | None = None
    max_autoscaling_limit: float | None = None
    active_seconds_limit: int | None = None
    compute_seconds_limit: int | None = None
