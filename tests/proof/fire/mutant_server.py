"""``python -m tests.proof.fire.mutant_server NAME serve …`` is ``tenure serve …`` with a named fault planted in it."""

import sys

from tenure.doors.cli.main import main
from tests.proof.fire.server_mutants import MUTANTS

if __name__ == "__main__":
    with MUTANTS[sys.argv.pop(1)].plant():
        main()
