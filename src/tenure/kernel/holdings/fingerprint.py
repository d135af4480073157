"""Marks: a short text that changes whenever anything of a holding does."""

import json
from hashlib import blake2b

from tenure.kernel.holdings.holding_model import Row


def mark_of(row: Row) -> str:
    """Return the mark of a holding as it is: whose, in which state, until when, with what written on it."""
    said = [row.owner, row.slot, str(row.state), row.generation, row.until_us, row.request, dict(row.details)]
    return blake2b(json.dumps(said, sort_keys=True).encode(), digest_size=9).hexdigest()
