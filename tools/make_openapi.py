"""Write docs/reference/openapi.json from the routes of the HTTP door.

Run it after changing a route; ``--check`` fails if the document is not what it would write.
"""

import argparse
from pathlib import Path

from tenure.doors.http.openapi.openapi_document import document

DOCUMENT = Path(__file__).parent.parent / "docs" / "reference" / "openapi.json"


def run() -> int:
    """Write the document, or check it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail if the document is out of date")
    written = document()
    if not parser.parse_args().check:
        DOCUMENT.write_bytes(written)
        return 0
    current = DOCUMENT.exists() and DOCUMENT.read_bytes() == written
    print("the document is current" if current else "out of date, run tools/make_openapi.py")
    return 0 if current else 1


if __name__ == "__main__":
    raise SystemExit(run())
