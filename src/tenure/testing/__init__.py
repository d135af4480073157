"""For our users' own tests: a ledger in memory, and faults on demand.

With pytest nothing needs to be imported: the fixtures ``tenure_ledger`` and ``tenure_faults`` are there as soon as
Tenure is installed.
"""

from tenure.testing.faults import Faults
from tenure.testing.ledgers import open_faulty, open_faulty_async

__all__ = ["Faults", "open_faulty", "open_faulty_async"]
