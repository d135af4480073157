"""``python -m tenure.doors.cli`` is ``tenure``."""

from tenure.doors.cli.main import main

main()
