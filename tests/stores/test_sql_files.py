"""Details as stores write them: what is written by hand is what the library would write, and reads back the same."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tenure.stores.sql_files import dump_details, read_details

WORDS = st.text(max_size=20)
ASKERS = st.tuples(WORDS, st.none() | WORDS).map(list)


@given(st.fixed_dictionaries({}, optional={"by": ASKERS, "labels": st.dictionaries(WORDS, WORDS, max_size=2)}))
def test_details_are_written_as_json_and_read_back(details: dict[str, Any]) -> None:
    written = dump_details(details)

    assert written == (json.dumps(details, separators=(",", ":"), sort_keys=True) if details else None)
    assert dict(read_details(written)) == details
