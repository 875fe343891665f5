"""Custom domains of a branch."""

from neonctl_async.models.base import Model, Pagination


class CustomDomain(Model, kw_only=True):
    """A domain that points to a service of a branch. Neon may add further status values."""

    domain: str
    """The domain, in lower case."""
    entity_type: str
    """The kind of target: ``function``."""
    entity_id: str
    """The id of the target. For a function, this is its slug."""
    cname_target: str
    """The host name for the domain's CNAME record; empty if the region does not have one."""
    status: str | None = None
    """``pending``, ``active`` or ``error``. None until the first check."""
    dns_status: str | None = None
    """The result of checking the DNS records: ``pending``, ``ok``, ``misconfigured`` (the CNAME
    record has another target) or ``caa_blocked`` (the CAA records forbid Let's Encrypt)."""
    binding_status: str | None = None
    """The routing within Neon: ``pending``, ``present`` or ``missing`` (Neon's fault)."""
    status_reason: str | None = None
    """The reason for an ``error``, such as ``cname-not-pointing-at-edge``; otherwise empty."""


class CustomDomainsPage(Model, kw_only=True):
    """A page of custom domains."""

    custom_domains: list[CustomDomain]
    pagination: Pagination | None = None
