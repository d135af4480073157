"""The ledger's errors in Neutron's words: exactly those that its callers catch, with the status their users get."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from neutron.ipam import exceptions as ipam_exc
from neutron_lib import exceptions as n_exc
from oslo_db import exception as db_exc

from tenure.integrations.neutron.database.unreadable_rows import Unreadable
from tenure.kernel.errors import (
    AddressInUse,
    AddressOutsideSubnet,
    AddressReserved,
    NotFound,
    PoolExhausted,
    StoreUnavailable,
    TenureError,
)

LOG = logging.getLogger(__name__)


class AddressKeptAway(ipam_exc.IpAddressAlreadyAllocated):  # type: ignore[misc]  # Neutron has no types
    """The address is somebody else's, or kept away, in a plan that Neutron shares. 409; the log says whose."""

    message = "IP address %(ip)s is not available in subnet %(subnet_id)s"


class LedgerUnavailable(n_exc.ServiceUnavailable):  # type: ignore[misc]  # Neutron's library has no types
    """The ledger did not answer in time. 503; the request left nothing behind, and the log says more."""

    message = "The ledger of addresses is not available"


class LedgerRefuses(n_exc.Conflict):  # type: ignore[misc]  # Neutron's library has no types
    """The ledger's plan forbids it, or kept changing. 409; the log says why."""

    message = "The ledger of addresses does not allow this for subnet %(subnet_id)s"


class RecordUnreadable(n_exc.ServiceUnavailable):  # type: ignore[misc]  # Neutron's library has no types
    """A row of the driver's makes no sense, and what it stood for is not known. 503; reconciling writes it anew."""

    message = (
        "The IPAM driver cannot read its record of subnet %(subnet_id)s in table %(table)s; "
        "an operator has to run `tenure neutron reconcile`"
    )


@contextmanager
def in_neutrons_words(subnet_id: str | None) -> Iterator[None]:
    """Turn errors of the ledger's, and of a subnet that went away, into Neutron's."""
    try:
        yield
    except (AddressInUse, AddressReserved) as error:
        # Whose it is may be nobody's business who asks: that goes to the log.
        LOG.info("subnet %s: %s", subnet_id, error)
        raise AddressKeptAway(subnet_id=subnet_id, ip=error.address) from error
    except AddressOutsideSubnet as error:
        raise ipam_exc.InvalidIpForSubnet(subnet_id=subnet_id, ip=error.address) from error
    except PoolExhausted as error:
        raise ipam_exc.IpAddressGenerationFailure(subnet_id=subnet_id) from error
    # The foreign key of a row was refused: the subnet has been removed meanwhile.
    except (NotFound, db_exc.DBReferenceError) as error:
        raise n_exc.SubnetNotFound(subnet_id=subnet_id) from error
    except StoreUnavailable as error:
        LOG.warning("subnet %s: %s", subnet_id, error)
        raise LedgerUnavailable from error
    except Unreadable as error:
        LOG.error("%s; see `tenure neutron verify`", error)
        raise RecordUnreadable(subnet_id=error.subnet, table=error.table) from error
    except TenureError as error:
        LOG.error("subnet %s: %s", subnet_id, error)
        raise LedgerRefuses(subnet_id=subnet_id) from error
