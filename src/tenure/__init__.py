"""Tenure: one ledger of IP addresses. Who holds which address, since when, on whose word."""

from tenure.kernel.configuration import Configuration, KeepBack, Network, NetworkKind, Policy, Pool, Subnet
from tenure.kernel.edits import (
    KEEP,
    AddNetwork,
    AddPool,
    AddSubnet,
    ModifyNetwork,
    ModifyPool,
    ModifySubnet,
    Preallocate,
    RemoveNetwork,
    RemovePool,
    RemovePreallocation,
    RemoveSubnet,
    Reserve,
    Unreserve,
)
from tenure.kernel.errors import (
    AddressInUse,
    AddressOutsideSubnet,
    AddressReserved,
    AlreadyExists,
    Conflict,
    CursorExpired,
    Invalid,
    NotFound,
    NotOwner,
    Overlap,
    PoolExhausted,
    StillInUse,
    StoreUnavailable,
    TenureError,
)
from tenure.kernel.names import Owner
from tenure.kernel.values import Change, Holding, State
from tenure.service.blocking import Ledger
from tenure.service.explaining import Explanation, Finding
from tenure.service.ledger import AsyncLedger
from tenure.service.operations import Allocate, Release, Transfer
from tenure.service.verifying import Breach
from tenure.wiring import open, open_async
