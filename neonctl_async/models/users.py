"""The account that an API key belongs to."""

from neonctl_async.models.base import Model, OpenEnum, Timestamp
from neonctl_async.models.projects import SubscriptionType
from neonctl_async.models.secret import Secret


class BillingAccountState(OpenEnum):
    """The state of a billing account."""

    UNKNOWN = "UNKNOWN"
    ACTIVE = "active"
    SUSPENDED = "suspended"
    DEACTIVATED = "deactivated"
    DELETED = "deleted"


class PaymentMethod(OpenEnum):
    """The payment method of an account."""

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
    SHARED_PAYMENT_TOKEN = "shared_payment_token"  # noqa: S105 - the name of a payment method, not a secret


class CardBrand(OpenEnum):
    """The brand of a bank card."""

    AMEX = "amex"
    DINERS = "diners"
    DISCOVER = "discover"
    JCB = "jcb"
    MASTERCARD = "mastercard"
    UNIONPAY = "unionpay"
    UNKNOWN = "unknown"
    VISA = "visa"


class BankCard(Model, kw_only=True):
    """The visible details of a bank card."""

    last4: str
    """The last four digits."""
    brand: CardBrand | None = None
    exp_month: int | None = None
    exp_year: int | None = None


class PaymentSource(Model, kw_only=True):
    """The source of payments."""

    type: str
    """The kind of the source, such as ``card``."""
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
    """The billing details of an account."""

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
    """The URL of the invoices. Hidden, because anyone who knows it can read them."""
    tax_id: str | None = None
    tax_id_type: str | None = None
    plan_details: PlanDetails | None = None
    spending_limit_cents: int | None = None
    """The monthly limit, in cents."""


class IdentityProvider(OpenEnum):
    """The provider of an external account."""

    GITHUB = "github"
    GOOGLE = "google"
    HASURA = "hasura"
    MICROSOFT = "microsoft"
    MICROSOFTV2 = "microsoftv2"
    VERCELMP = "vercelmp"
    KEYCLOAK = "keycloak"


class AuthMethod(OpenEnum):
    """The method that authenticated a request."""

    KEYCLOAK = "keycloak"
    SESSION_COOKIE = "session_cookie"
    API_KEY_USER = "api_key_user"
    API_KEY_ORG = "api_key_org"
    OAUTH = "oauth"


class AuthDetails(Model, kw_only=True):
    """The account and the kind of the API key that a request used."""

    account_id: str
    """The id of a user or an organization."""
    auth_method: AuthMethod
    auth_data: str | None = None


class AuthAccount(Model, kw_only=True):
    """An external account that a user signs in with."""

    email: str | None = None
    provider: IdentityProvider | None = None
    name: str | None = None
    login: str | None = None
    image: str | None = None


class CurrentUser(Model, kw_only=True):
    """The user that the API key belongs to, with the limits of the account."""

    id: str
    email: str
    name: str | None = None
    last_name: str | None = None
    login: str | None = None
    """Deprecated by Neon: use ``email``."""
    image: str | None = None
    """The URL of the user's picture."""
    plan: str | None = None
    auth_accounts: list[AuthAccount] = []
    billing_account: BillingAccount | None = None
    projects_limit: int | None = None
    branches_limit: int | None = None
    max_autoscaling_limit: float | None = None
    """The maximum size of a compute, in compute units."""
    active_seconds_limit: int | None = None
    compute_seconds_limit: int | None = None
    """In CPU seconds."""
