"""Where a request comes from, and whether it may come without a token."""

from collections.abc import Mapping
from ipaddress import IPv6Address, ip_address, ip_network

from tenure.doors.http.routing.read_request import Scope
from tenure.doors.http.settings import Settings
from tenure.kernel.errors import Invalid

SPOKEN_FOR = (b"x-forwarded-for", b"forwarded", b"x-real-ip")
"""Headers by which a proxy says that it speaks for somebody else."""


def is_loopback(host: str) -> bool:
    """Tell whether a name or an address is this machine's own, for itself."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def peer_of(scope: Scope) -> str:
    """Return whose failures are counted together: an address, or all of an IPv6 /64, which one machine has at will."""
    client = scope.get("client")
    if not client:
        return ""
    try:
        address = ip_address(client[0])
    except ValueError:
        return str(client[0])
    if isinstance(address, IPv6Address):
        # A socket of both families shows IPv4 clients as mapped addresses, which all lie in one /64.
        mapped = address.ipv4_mapped
        return str(mapped or ip_network((address, 64), strict=False))
    return str(address)


def host_of(headers: Mapping[bytes, bytes]) -> str:
    """Return the host that a request is for, without its port."""
    said = headers.get(b"host", b"").decode("latin-1")
    if not said.startswith("["):
        return said.partition(":")[0]
    host, _, rest = said.partition("]")
    return f"{host}]" if not rest or rest.startswith(":") else said  # what goes on behind it is another name


def check_anonymous(settings: Settings) -> None:
    """Refuse to let everybody read where others than this machine could be everybody."""
    if settings.anonymous and not is_loopback(settings.host):
        raise Invalid(
            f"anonymous: only for a server that listens on loopback, and this one is to listen on {settings.host!r}; "
            "make tokens with the scope read instead (`tenure token add NAME --scope read`)",
            field="anonymous",
        )


def is_here(scope: Scope, headers: Mapping[bytes, bytes]) -> bool:
    """Tell whether a request comes from this machine, and is meant for it.

    Not so if a proxy speaks for somebody else, nor if it was sent to another name than loopback's: that is how a
    page from elsewhere would read through a browser on this machine (DNS rebinding).
    """
    client = scope.get("client")
    if not client or any(name in headers for name in SPOKEN_FOR):
        return False
    return is_loopback(client[0]) and is_loopback(host_of(headers))


def is_secure(scope: Scope, headers: Mapping[bytes, bytes], settings: Settings) -> bool:
    """Tell whether a cookie may only travel encrypted: always, unless browser and server are on one machine."""
    if settings.certificate is not None or scope.get("scheme") == "https":
        return True
    return not (is_loopback(settings.host) and is_loopback(host_of(headers)))


def is_own_page(headers: Mapping[bytes, bytes]) -> bool:
    """Tell whether a request comes from a page of ours, as far as the browser says where it comes from."""
    origin = headers.get(b"origin")
    if origin is None:
        return True
    host = headers.get(b"host", b"")
    # `Origin: null` has no host, and must not match a request without Host.
    return host != b"" and origin.partition(b"://")[2].lower() == host.lower()
