"""Objects in little room are what they were, in whatever order they come and go."""

import tracemalloc
from itertools import islice

import pytest

from tenure.integrations.kubernetes.runtime import packed_objects
from tenure.integrations.kubernetes.runtime.object_cache import KeyIndex
from tenure.integrations.kubernetes.runtime.packed_objects import PackedObjects
from tenure.integrations.kubernetes.runtime.resource_types import Object


def made(number: int, version: int = 1) -> Object:
    """Return an object such as an operator sees by the thousand."""
    owner = {"apiVersion": "v1", "kind": "Claim", "name": f"claim-{number}", "uid": f"{number:08x}-aaaa-bbbb-cccc"}
    metadata = {"namespace": "metal", "name": f"a{number}", "uid": f"uid-{number}", "resourceVersion": str(version)}
    spec = {"address": f"10.0.{number // 256}.{number % 256}", "prefix": 16, "pool": {"name": "p"}, "text": "ä\u2028"}
    return {"metadata": {**metadata, "ownerReferences": [owner]}, "spec": spec}


@pytest.mark.parametrize("recent", [0, 3, 1000])
def test_what_was_put_is_got_whether_it_is_recent_or_not(monkeypatch: pytest.MonkeyPatch, recent: int) -> None:
    monkeypatch.setattr(packed_objects, "RECENT", recent)
    objects = PackedObjects()
    for number in range(10):
        objects.put(made(number))
    objects.put(made(4, version=2))
    objects.remove(("metal", "a7"))

    wanted = [made(number, version=2 if number == 4 else 1) for number in range(10) if number != 7]
    assert list(objects) == wanted
    assert [objects.get(("metal", f"a{number}")) for number in (0, 4, 7)] == [made(0), made(4, 2), None]
    assert [(key[1], head.uid, head.version) for key, head in objects.heads()][4] == ("a4", "uid-4", 2)
    assert len(objects) == 9
    assert ("metal", "a7") not in objects


def test_a_walk_shows_what_was_there_when_it_began() -> None:
    objects = PackedObjects()
    for number in range(4):
        objects.put(made(number))
    walk = iter(objects)
    first = list(islice(walk, 1))
    objects.put(made(2, version=9))
    objects.remove(("metal", "a3"))

    assert [*first, *walk] == [made(number) for number in range(4)]


def test_objects_that_differ_much_from_the_first_are_kept_as_well() -> None:
    objects = PackedObjects()
    objects.put({"metadata": {"name": "first", "uid": "1"}})
    large = {"metadata": {"name": "large", "uid": "2"}, "spec": {"ranges": [f"10.0.0.{n}" for n in range(5000)]}}
    objects.put(large)
    for number in range(packed_objects.RECENT):
        objects.put(made(number))

    assert objects.get(("", "large")) == large


def nested(levels: int) -> object:
    """Return an object of so many levels."""
    found: object = "deepest"
    for _ in range(levels):
        found = {"below": found}
    return found


@pytest.mark.parametrize("recent", [0, 3])
def test_an_object_that_is_too_deep_to_be_packed_is_kept_as_it_is(monkeypatch: pytest.MonkeyPatch, recent: int) -> None:
    """Orjson reads three times as many levels as it writes."""
    monkeypatch.setattr(packed_objects, "RECENT", recent)
    objects = PackedObjects()
    deep = {**made(0), "spec": nested(300)}
    objects.put(deep)
    for number in range(1, 8):
        objects.put(made(number))

    assert objects.get(("metal", "a0")) == deep
    assert list(objects) == [deep, *(made(number) for number in range(1, 8))]
    objects.put(made(0, version=2))
    for number in range(1, 8):
        objects.get(("metal", f"a{number}"))
    assert objects.get(("metal", "a0")) == made(0, version=2)


def test_an_object_that_is_too_deep_to_be_packed_can_be_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_objects, "RECENT", 0)
    objects = PackedObjects()
    objects.put({**made(0), "spec": nested(300)})
    objects.remove(("metal", "a0"))
    objects.put(made(0))

    assert list(objects) == [made(0)]


def test_many_objects_take_little_room_each() -> None:
    """Parsed, each would take some 3 KB."""
    objects = PackedObjects()
    for number in range(packed_objects.RECENT):
        objects.put(made(number))
    tracemalloc.start()
    for number in range(packed_objects.RECENT, 6000):
        objects.put(made(number))
    # Those that were recent before have made room, so the recent ones are not counted.
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    parsed = 3000 * packed_objects.RECENT
    assert (taken - parsed) / 5000 < 600


def test_an_index_has_one_key_or_many_under_a_value() -> None:
    index = KeyIndex()
    index.add("v", ("m", "b"))
    index.add("v", ("m", "b"))
    one = index.get("v")
    index.add("v", ("m", "a"))
    two = index.get("v")
    index.discard("v", ("m", "b"))
    left = index.get("v")
    index.discard("v", ("m", "a"))
    index.discard("v", ("m", "a"))

    assert (one, two, left, index.get("v")) == ([("m", "b")], [("m", "a"), ("m", "b")], [("m", "a")], [])
