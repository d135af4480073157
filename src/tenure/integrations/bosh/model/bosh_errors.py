"""What may be wrong, by the names and numbers that BOSH users know; and places in the documents they wrote."""

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple

from tenure.kernel.errors import TenureError


class BoshErrorKind(enum.Enum):
    """A kind of fault: its name is BOSH's, its value the number that BOSH tells with it.

    Where BOSH's own number has five digits by mistake (16013 – 16015), ours is the six-digit form it was meant to be.
    """

    GENERIC = 100
    COMPILATION_CONFIG_UNKNOWN_NETWORK = 120001
    COMPILATION_CONFIG_INVALID_AVAILABILITY_ZONE = 120002
    NETWORK_RESERVATION_INVALID_IP = 130001
    NETWORK_RESERVATION_ALREADY_EXISTS = 130003
    NETWORK_RESERVATION_IP_MISSING = 130005
    NETWORK_RESERVATION_IP_NOT_OWNED = 130006
    NETWORK_RESERVATION_VIP_DEFAULT_PROVIDED = 130007
    NETWORK_RESERVATION_ALREADY_IN_USE = 130008
    NETWORK_RESERVATION_WRONG_TYPE = 130009
    NETWORK_RESERVATION_ERROR = 130010
    NETWORK_RESERVATION_NOT_ENOUGH_CAPACITY = 130011
    NETWORK_RESERVATION_IP_OUTSIDE_SUBNET = 130012
    NETWORK_RESERVATION_IP_RESERVED = 130013
    NETWORK_RESERVATION_VIP_MISCONFIGURED = 130014
    NETWORK_RESERVATION_INVALID_PREFIX = 130015
    JOB_MISSING_NETWORK = 140009
    JOB_INVALID_AVAILABILITY_ZONE = 140016
    JOB_MISSING_AVAILABILITY_ZONES = 140017
    JOB_UNKNOWN_AVAILABILITY_ZONE = 140018
    V1_DEPRECATED_NETWORKS = 140026
    JOB_UNKNOWN_NETWORK = 150001
    INSTANCE_GROUP_NETWORK_INSTANCE_IP_MISMATCH = 150002
    JOB_NETWORK_INVALID_DEFAULT = 150003
    JOB_NETWORK_MULTIPLE_DEFAULTS = 150004
    JOB_NETWORK_MISSING_DEFAULT = 150005
    JOB_NETWORK_MISSING_REQUIRED_AVAILABILITY_ZONE = 150006
    JOB_STATIC_IPS_FROM_INVALID_AVAILABILITY_ZONE = 150007
    JOB_STATIC_IP_NOT_SUPPORTED_ON_DYNAMIC_NETWORK = 150008
    JOB_INVALID_STATIC_IPS = 150009
    NETWORK_OVERLAPPING_SUBNETS = 160001
    NETWORK_INVALID_RANGE = 160002
    NETWORK_INVALID_GATEWAY = 160003
    NETWORK_INVALID_DNS = 160004
    NETWORK_RESERVED_IP_OUT_OF_RANGE = 160005
    NETWORK_STATIC_IP_OUT_OF_RANGE = 160006
    NETWORK_SUBNET_UNKNOWN_AVAILABILITY_ZONE = 160007
    NETWORK_INVALID_PROPERTY = 160008
    NETWORK_SUBNET_INVALID_AVAILABILITY_ZONE = 160009
    NETWORK_INVALID_IP_RANGE_FORMAT = 160010
    NETWORK_PREFIX_SIZE_TOO_BIG = 160013
    NETWORK_PREFIX_SIZES_DIFFER = 160014
    NETWORK_PREFIX_STATIC_IP_NOT_BASE_ADDRESS = 160015
    DEPLOYMENT_CANONICAL_NETWORK_NAME_TAKEN = 190007
    DEPLOYMENT_NO_NETWORKS = 190008
    DEPLOYMENT_INVALID_NETWORK_TYPE = 190010
    DEPLOYMENT_DUPLICATE_AVAILABILITY_ZONE_NAME = 190017
    DEPLOYMENT_INVALID_MIGRATED_FROM_JOB = 190018
    DEPLOYMENT_IGNORED_INSTANCES_MODIFICATION = 190020
    DEPLOYMENT_IGNORED_INSTANCES_DELETION = 190021

    @property
    def title(self) -> str:
        """Return BOSH's name: ``NetworkReservationAlreadyInUse``."""
        return _TITLES.get(self) or "".join(word.capitalize() for word in self.name.split("_"))


_TITLES = {
    BoshErrorKind.GENERIC: "DirectorError",
    BoshErrorKind.V1_DEPRECATED_NETWORKS: "V1DeprecatedNetworks",
    BoshErrorKind.JOB_STATIC_IP_NOT_SUPPORTED_ON_DYNAMIC_NETWORK: "JobStaticIPNotSupportedOnDynamicNetwork",
    BoshErrorKind.JOB_INVALID_STATIC_IPS: "JobInvalidStaticIPs",
}
"""Names that are not simply the words of ours put together."""


class DocumentPlace(NamedTuple):
    """Where in a document: its name, line and column (both from 1), and the way there (``networks[0].range``)."""

    document: str
    line: int
    column: int
    path: str

    def __str__(self) -> str:
        return f"{self.document}:{self.line}:{self.column}" + (f" ({self.path})" if self.path else "")


class BoshFault(NamedTuple):
    """One thing that is wrong."""

    kind: BoshErrorKind
    message: str
    place: DocumentPlace | None = None

    def told(self) -> dict[str, Any]:
        """Write it for programs."""
        place = None if self.place is None else self.place._asdict()
        return {"error": self.kind.title, "number": self.kind.value, "message": self.message, "place": place}

    def __str__(self) -> str:
        where = "" if self.place is None else f"{self.place}: "
        return f"{where}{self.message} [{self.kind.title} {self.kind.value}]"


class Rejected(TenureError):
    """A document is wrong: everything that is wrong with it, each with its place. Nothing was changed."""

    code = "document_rejected"

    def __init__(self, faults: Sequence[BoshFault]) -> None:
        super().__init__("\n".join(str(fault) for fault in faults))
        self.faults = tuple(faults)


class Refused(TenureError):
    """What a deployment wants cannot be had, or may not be done. Nothing was changed."""

    code = "deployment_refused"

    def __init__(self, kind: BoshErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind

    @property
    def fault(self) -> BoshFault:
        """Return it as a fault without a place."""
        return BoshFault(self.kind, self.message)

    @property
    def faults(self) -> tuple[BoshFault, ...]:
        """Return all that is wrong, as a document that is rejected does: this alone."""
        return (self.fault,)
