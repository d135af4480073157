"""What the rules ask of stores, clocks and chance. Two tiers: every store is a Book, some are LedgerStores.

A Book creates holdings *if nobody is in the way* (``grant``) and ends them (``release``). A LedgerStore adds
transactions, in which the ledger's own code makes several effects one: that code stands in ``service``, once, and
not in the stores. All verbs are plural. All are coroutines; a store that never waits just never suspends.

What a call promises:

* It answers, or raises ``StoreUnavailable`` with an outcome. ``none``: nothing happened. ``unknown``: it may have;
  the same call again tells. Where a call is about several things and their outcomes differ, each has an answer of its
  own, and ``Failed`` stands in place of those that have none.
* Answered effects are durable.
"""

from tenure.kernel.choosing import Chance
from tenure.ports.stores import Book, LedgerStore
from tenure.ports.transactions import CallerTransaction, Transaction
from tenure.ports.words import FAR_BEHIND, Abilities, Effects, Failed, Guard, KeyTaken, NotAll, Size, Stale

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
