"""The ledger's errors in Neutron's words: exactly those that its callers catch, with the status their users get."""

from collections.abc import Iterator
from contextlib import contextmanager

from neutron.ipam import exceptions as ipam_exc
from neutron_lib import exceptions as n_exc
from oslo_db import exception as db_exc

from tenure.kernel.errors import (
    AddressInUse,
    AddressOutsideSubnet,
    AddressReserved,
    NotFound,
    PoolExhausted,
    StoreUnavailable,
)


class AddressKeptAway(ipam_exc.IpAddressAlreadyAllocated):  # type: ignore[misc]  # Neutron has no types
    """The address is somebody else's, or kept away, in a plan that Neutron shares. 409."""

    message = "IP address %(ip)s cannot be had in subnet %(subnet_id)s: %(reason)s"


class LedgerUnavailable(n_exc.ServiceUnavailable):  # type: ignore[misc]  # Neutron's library has no types
    """The ledger did not answer in time. 503; the request left nothing behind."""

    message = "The ledger of addresses is not available: %(reason)s"


@contextmanager
def in_neutrons_words(subnet_id: str | None) -> Iterator[None]:
    """Turn errors of the ledger's, and of a subnet that went away, into Neutron's."""
    try:
        yield
    except (AddressInUse, AddressReserved) as error:
        raise AddressKeptAway(subnet_id=subnet_id, ip=error.address, reason=error) from error
    except AddressOutsideSubnet as error:
        raise ipam_exc.InvalidIpForSubnet(subnet_id=subnet_id, ip=error.address) from error
    except PoolExhausted as error:
        raise ipam_exc.IpAddressGenerationFailure(subnet_id=subnet_id) from error
    except (NotFound, db_exc.DBReferenceError) as error:
        raise n_exc.SubnetNotFound(subnet_id=subnet_id) from error
    except StoreUnavailable as error:
        raise LedgerUnavailable(reason=error) from error
