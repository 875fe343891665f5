"""The addresses from which clients may connect to a project. The error messages are Neon's."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import msgspec

_Range = tuple[IPv4Address | IPv6Address, IPv4Address | IPv6Address]


class AllowedIps(msgspec.Struct, frozen=True, kw_only=True):
    """The addresses that may connect to a project. If there are none, every address may."""

    ips: list[str] = []
    protected_branches_only: bool = False


class _Settings(msgspec.Struct, frozen=True):
    """The settings of a project that restrict connections."""

    allowed_ips: AllowedIps = AllowedIps()
    block_public_connections: bool = False


def refusal(settings: str, address: str, *, protected: bool) -> str | None:
    """Return why an address may not connect to a branch, or None if it may.

    ``settings`` contains the project's settings. Every connection counts as public, because there
    is no private network.
    """
    rules = msgspec.json.decode(settings, type=_Settings)
    if rules.block_public_connections:
        return "This connection is trying to access this endpoint from a blocked network."
    allowed = rules.allowed_ips
    if not allowed.ips or (allowed.protected_branches_only and not protected):
        return None
    client = ip_address(address)
    if isinstance(client, IPv6Address) and client.ipv4_mapped:
        client = client.ipv4_mapped
    if any(_contains(text, client) for text in allowed.ips):
        return None
    return (
        f"This IP address {client} is not allowed to connect to this endpoint. Please add it to "
        "the allowed list in the Neon console. Make sure to check for IPv4 or IPv6 addresses."
    )


def allowed_range(text: str) -> _Range:
    """Return the first and the last address of a range.

    ``text`` is an address, a CIDR network or a range like ``a-b``. Raise ValueError if it is none
    of these.
    """
    first, dash, last = text.partition("-")
    if not dash:
        network = ip_network(text.strip(), strict=False)
        return network[0], network[-1]
    ends = ip_address(first.strip()), ip_address(last.strip())
    if type(ends[0]) is not type(ends[1]) or int(ends[0]) > int(ends[1]):
        raise ValueError(f"{text!r} is not a range of addresses")
    return ends


def _contains(text: str, client: IPv4Address | IPv6Address) -> bool:
    first, last = allowed_range(text)
    return first.version == client.version and int(first) <= int(client) <= int(last)
