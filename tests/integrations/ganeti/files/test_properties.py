"""Whatever a consistent configuration says, it comes back; whatever a broken one says, it is refused in words."""

import asyncio
import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tenure
from tenure.integrations.ganeti.files.export_cluster import export_cluster
from tenure.integrations.ganeti.files.load.import_cluster import plan_import, run_import
from tenure.integrations.ganeti.files.read.cluster_file import read_cluster, read_file
from tenure.integrations.ganeti.files.runtime_files import convert_runtime, read_runtime
from tenure.integrations.ganeti.files.unknown_fields import digest, rest_of, restored
from tests.integrations.ganeti.files.documents import Json, breaches, new_document, old_document
from tests.integrations.ganeti.files.strategies import EXTRA, configurations
from tests.profiles import examples


async def through_a_ledger(document: Json, form: Any) -> tuple[Json, Json]:
    """Import a document and export it; then the same with what came of it. Return both."""
    written: list[Json] = []
    for _ in range(2):
        async with await tenure.open_async("memory:") as ledger:
            given = copy.deepcopy(written[-1] if written else document)
            await run_import(ledger, await plan_import(read_file(json.dumps(given).encode()), ledger))
            written.append(await export_cluster(ledger, form))
            assert await breaches(ledger) == []
    return written[0], written[1]


@given(configurations(revised=False))
def test_any_configuration_of_today_comes_back_equal(document: Json) -> None:
    written, again = asyncio.run(through_a_ledger(document, "today"))

    assert written == document
    assert again == document


@given(configurations(revised=True))
def test_any_revised_configuration_comes_back_equal(document: Json) -> None:
    written, again = asyncio.run(through_a_ledger(document, "revised"))

    assert written == document
    assert again == document


@given(configurations(revised=False))
@settings(max_examples=examples(0.5))
def test_any_configuration_of_today_is_settled_once_it_is_revised(document: Json) -> None:
    revised, again = asyncio.run(through_a_ledger(document, "revised"))

    assert again == revised
    assert read_cluster(revised).form == "revised"


@given(configurations(revised=False))
def test_running_instances_are_converted_there_and_back(document: Json) -> None:
    document = json.loads(json.dumps(document).replace("2001:DB8:", "2001:db8:"))  # the way back writes it the one way
    nics = [nic for instance in document["instances"].values() for nic in instance["nics"]]
    carried = [{**nic, "netinfo": document["networks"].get(nic.get("network"))} for nic in nics]
    today = [["kvm"], carried, {}, []]
    revised = convert_runtime(today, "revised")

    assert convert_runtime(revised, "revised") == revised
    assert convert_runtime(revised, "today") == today


@given(EXTRA, EXTRA, EXTRA)
def test_a_rest_makes_the_original_of_the_plain_document(original: Json, plain: Json, changed: Json) -> None:
    rest = json.loads(json.dumps(rest_of(original, plain, {})))

    assert digest(restored(rest, plain, {})) == digest(original)
    now = restored(rest, changed, {})
    for key in changed:
        same = key in plain and digest(changed[key]) == digest(plain[key])
        assert now.get(key) == (original if same else changed).get(key)


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.sampled_from(["192.0.2.4", "::1", "10.0.0.0/8"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)


def places(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """List the places of a document."""
    steps = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    return [path, *(place for key, inner in steps for place in places(inner, (*path, key)))]


@st.composite
def broken(draw: st.DrawFn, whole: Any) -> Any:
    """Draw a document of which a piece or three were replaced by anything."""
    made = copy.deepcopy(whole)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(places(made)))
        if not path:
            return draw(ANYTHING)
        inner = made
        for step in path[:-1]:
            inner = inner[step]
        inner[path[-1]] = draw(ANYTHING)
    return made


async def tried(document: Any) -> bool:
    """Import a document if it can be read; tell whether it came back equal, or was refused at a place."""
    async with await tenure.open_async("memory:") as ledger:
        try:
            cluster = read_file(json.dumps(document).encode())
            plan = await plan_import(cluster, ledger)
        except tenure.Invalid as error:
            return error.field is not None and await ledger.last_change() == 0
        await run_import(ledger, plan)
        if any(network.form != cluster.form for network in cluster.networks):
            return True  # of two forms in one file only one comes back
        return bool(await export_cluster(ledger, cluster.form) == document)


@pytest.mark.parametrize("whole", [old_document(), new_document()], ids=["today", "revised"])
@given(data=st.data())
@settings(max_examples=examples(3))
def test_a_broken_configuration_is_refused_in_words_or_comes_back_equal(whole: Json, data: st.DataObject) -> None:
    assert asyncio.run(tried(data.draw(broken(whole))))


@given(data=st.binary(max_size=60) | st.text(alphabet='{}[]",:01eE-null\\', max_size=60).map(str.encode))
@settings(max_examples=examples(3))
def test_any_bytes_are_refused_in_words(data: bytes) -> None:
    for read in (read_file, read_runtime):
        with pytest.raises(tenure.Invalid) as refused:
            read(data)
        assert refused.value.field


@given(data=st.data())
@settings(max_examples=examples(2))
def test_a_broken_runtime_file_is_refused_in_words(data: st.DataObject) -> None:
    nics = old_document()["instances"]["eeeeeeee-0000-4000-8000-00000000000e"]["nics"]
    whole = [[], [{**nic, "netinfo": old_document()["networks"].get(nic["network"])} for nic in nics], {}]
    document = data.draw(broken(whole))
    try:
        revised = convert_runtime(document, "revised")
    except tenure.Invalid as error:
        refused = error.field
    else:
        refused = "nothing" if convert_runtime(revised, "revised") == revised else None

    assert refused is not None
