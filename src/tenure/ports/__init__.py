"""What the rules ask of stores. Two tiers: every store is a Book, some are LedgerStores.

A Book creates holdings *if nobody is in the way* (``grant``) and ends them (``release``). A LedgerStore adds
transactions, in which the ledger's own code makes several effects one: that code stands in ``service``, once, and
not in the stores. All verbs are plural. All are coroutines; a store that never waits just never suspends.

What a call promises:

* It answers, or raises ``StoreUnavailable`` with an outcome. ``none``: nothing happened. ``unknown``: it may have;
  the same call again tells. Where a call is about several things and their outcomes differ, each has an answer of its
  own, and ``Failed`` stands in place of those that have none.
* Answered effects are durable.

Ports import only the kernel; ``service``, ``stores`` and everything above them import ports. Begin with ``store``.
"""

from tenure.kernel.picking.policies import Chance
from tenure.ports.contract_types import FAR_BEHIND, Abilities, Effects, Failed, Guard, KeyTaken, NotAll, Size, Stale
from tenure.ports.store import Book, LedgerStore
from tenure.ports.transaction import CallerTransaction, Transaction

__all__ = [
    "FAR_BEHIND",
    "Abilities",
    "Book",
    "CallerTransaction",
    "Chance",
    "Effects",
    "Failed",
    "Guard",
    "KeyTaken",
    "LedgerStore",
    "NotAll",
    "Size",
    "Stale",
    "Transaction",
]
