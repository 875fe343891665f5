"""The account that a key belongs to."""

from neonctl_async.models.base import Model, OpenEnum, Timestamp
from neonctl_async.models.secret import Secret


class BillingAccountState(OpenEnum):
    """Whether an account is paid for."""

    UNKNOWN = "UNKNOWN"
    ACTIVE = "active"
    SUSPENDED = "suspended"
    DEACTIVATED = "deactivated"
    DELETED = "deleted"


class SubscriptionType(OpenEnum):
    """What was subscribed to."""

    UNKNOWN = "UNKNOWN"
    DIRECT_SALES = "direct_sales"
    DIRECT_SALES_V3 = "direct_sales_v3"
    AWS_MARKETPLACE = "aws_marketplace"
    FREE_V2 = "free_v2"
    FREE_V3 = "free_v3"
    LAUNCH = "launch"
    LAUNCH_V3 = "launch_v3"
    SCALE = "scale"
    SCALE_V3 = "scale_v3"
    BUSINESS = "business"
    VERCEL_PG_LEGACY = "vercel_pg_legacy"


class PaymentMethod(OpenEnum):
    """How an account pays."""

    UNKNOWN = "UNKNOWN"
    NONE = "none"
    STRIPE = "stripe"
    DIRECT_PAYMENT = "direct_payment"
    AWS_MP = "aws_mp"
    AZURE_MP = "azure_mp"
    VERCEL_MP = "vercel_mp"
    STAFF = "staff"
    TRIAL = "trial"
    SPONSORSHIP = "sponsorship"
    SHARED_PAYMENT_TOKEN = "shared_payment_token"  # noqa: S105 - the name of a method, no token


class CardBrand(OpenEnum):
    """Who issued a bank card."""

    AMEX = "amex"
    DINERS = "diners"
    DISCOVER = "discover"
    JCB = "jcb"
    MASTERCARD = "mastercard"
    UNIONPAY = "unionpay"
    UNKNOWN = "unknown"
    VISA = "visa"


class BankCard(Model, kw_only=True):
    """A bank card, as far as it may be shown."""

    last4: str
    brand: CardBrand | None = None
    exp_month: int | None = None
    exp_year: int | None = None


class PaymentSource(Model, kw_only=True):
    """What is paid with."""

    type: str
    card: BankCard | None = None


class PlanVersion(Model, kw_only=True):
    """The version of a plan."""

    major: int
    minor: int


class PlanDetails(Model, kw_only=True):
    """The plan of an account."""

    name: str
    version: PlanVersion | None = None


class BillingAccount(Model, kw_only=True):
    """Who pays. ``spending_limit_cents`` is in cents a month.

    ``orb_portal_url`` opens the invoices to whoever has it, and is hidden like a password.
    """

    state: BillingAccountState | None = None
    subscription_type: SubscriptionType | None = None
    payment_method: PaymentMethod | None = None
    payment_source: PaymentSource | None = None
    quota_reset_at_last: Timestamp | None = None
    name: str | None = None
    email: str | None = None
    address_line1: str | None = None
    address_line2: str | None = None
    address_city: str | None = None
    address_postal_code: str | None = None
    address_state: str | None = None
    address_country: str | None = None
    address_country_name: str | None = None
    orb_portal_url: Secret | None = None
    tax_id: str | None = None
    tax_id_type: str | None = None
    plan_details: PlanDetails | None = None
    spending_limit_cents: int | None = None


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
