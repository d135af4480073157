"""For our users' own tests: a ledger in memory, and faults on demand.

With pytest nothing needs to be imported: the fixtures ``tenure_ledger`` and ``tenure_faults`` are there as soon as
Tenure is installed. Nothing in Tenure imports this package. Begin with ``faulty_ledger``.
"""

from tenure.testing.fault_injection import Faults
from tenure.testing.faulty_ledger import open_faulty, open_faulty_async

__all__ = ["Faults", "open_faulty", "open_faulty_async"]
