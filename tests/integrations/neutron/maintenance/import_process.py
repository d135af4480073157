"""An import in a process of its own, to be killed.

``python -m tests.integrations.neutron.maintenance.import_process URL LEDGER``
"""

import sys

from tests.integrations.neutron.maintenance.maintenance_site import moved_in


def told(done: int, total: int | None) -> None:
    """Tell the parent how far it is."""
    print(done, total, flush=True)


if __name__ == "__main__":
    database, ledger = sys.argv[1:]
    report = moved_in(database, ledger, told)
    print("agreed" if report.agreed else "not agreed", flush=True)
