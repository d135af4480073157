"""A cache of objects never goes back in time, whatever comes late, twice, or first by its own hand."""

from typing import Any

import hypothesis.strategies as st
from hypothesis import given

from tenure.integrations.kubernetes.runtime.object_cache import ObjectCache
from tenure.integrations.kubernetes.runtime.resource_types import Object


def made(name: str, version: int, uid: str = "", **labels: str) -> Object:
    metadata = {"namespace": "n", "name": name, "uid": uid or f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": {**metadata, "labels": labels}}


def test_an_object_that_comes_late_or_twice_is_passed_over() -> None:
    cache = ObjectCache()
    newer, older = made("a", 5), made("a", 4)

    assert cache.saw(newer) is not None
    assert cache.saw(older) is None
    assert cache.saw(made("a", 5)) is None
    assert cache.get(("n", "a")) is newer


def test_what_this_process_deleted_does_not_come_back_by_an_old_event() -> None:
    cache = ObjectCache()
    cache.saw(made("a", 5))

    assert cache.saw_gone(made("a", 5), answered=True) is not None
    assert cache.saw(made("a", 6)) is None
    assert cache.saw_gone(made("a", 7)) is None
    again = cache.saw(made("a", 9, uid="another"))

    assert again is not None
    assert len(cache) == 1


def test_the_end_of_a_former_object_does_not_remove_its_successor() -> None:
    cache = ObjectCache()
    cache.saw(made("a", 9, uid="second"))

    assert cache.saw_gone(made("a", 8, uid="first")) is None
    assert cache.get(("n", "a")) is not None


def test_a_list_removes_what_is_missing_in_it_but_not_what_was_written_after_it() -> None:
    cache = ObjectCache()
    for name, version in (("old", 3), ("kept", 4), ("own", 12)):
        cache.saw(made(name, version))

    deltas = cache.replace([made("kept", 4), made("new", 8)], version=10)

    assert sorted((delta.key[1], delta.after is None) for delta in deltas) == [("new", False), ("old", True)]
    assert sorted(each["metadata"]["name"] for each in cache) == ["kept", "new", "own"]


def test_a_list_from_before_a_deletion_does_not_bring_the_object_back() -> None:
    cache = ObjectCache()
    cache.saw(made("a", 5))
    cache.saw_gone(made("a", 5), answered=True)

    assert cache.replace([made("a", 5)], version=6) == []
    assert cache.saw(made("a", 6)) is None  # an event from between the list and the deletion
    assert cache.saw_gone(made("a", 7)) is None
    assert len(cache) == 0


def test_objects_are_found_by_what_an_indexer_says_of_them_now() -> None:
    cache = ObjectCache({"pool": lambda each: [each["metadata"]["labels"]["pool"]]})
    cache.saw(made("b", 1, pool="x"))
    cache.saw(made("a", 2, pool="x"))
    cache.saw(made("b", 3, pool="y"))

    assert [each["metadata"]["name"] for each in cache.by_index("pool", "x")] == ["a"]
    cache.saw_gone(made("b", 4))
    assert cache.by_index("pool", "y") == []


def test_a_server_that_was_restored_from_a_backup_is_believed() -> None:
    cache = ObjectCache()
    cache.replace([made("a", 90), made("b", 95)], version=100)

    cache.replace([made("a", 40)], version=50)

    assert [each["metadata"]["resourceVersion"] for each in cache] == ["40"]
    assert cache.saw(made("c", 51)) is not None


class Truth:
    """A server with one kind: its writes, in order, as a watch would bring them."""

    def __init__(self) -> None:
        self.version = 0
        self.objects: dict[str, Object] = {}
        self.events: list[tuple[str, Object]] = []

    def write(self, name: str) -> Object:
        self.version += 1
        before = self.objects.get(name)
        uid = before["metadata"]["uid"] if before else f"{name}-{self.version}"
        self.objects[name] = made(name, self.version, uid)
        self.events.append(("MODIFIED" if before else "ADDED", self.objects[name]))
        return self.objects[name]

    def delete(self, name: str) -> Object | None:
        if name not in self.objects:
            return None
        self.version += 1
        gone = self.objects.pop(name)
        self.events.append(("DELETED", made(name, self.version, gone["metadata"]["uid"])))
        return gone


ACTS = st.lists(
    st.tuples(
        st.sampled_from(["write", "delete", "own write", "own delete", "watch", "list", "compare"]),
        st.sampled_from("ab"),
    )
)


@given(ACTS)
def test_in_whatever_order_answers_events_and_lists_come_the_cache_ends_as_the_server(
    acts: list[tuple[str, str]],
) -> None:
    truth, cache, followed, ended = Truth(), ObjectCache(), 0, set[str]()
    for act, name in acts:
        if act.endswith("write"):
            written = truth.write(name)
            if act.startswith("own"):
                cache.saw(written)
                assert cache.get(("n", name)) == written
        elif act.endswith("delete"):
            gone = truth.delete(name)
            if gone is not None and act.startswith("own"):
                cache.saw_gone(gone, answered=True)
                assert cache.get(("n", name)) is None
        elif act == "watch" and followed < len(truth.events):
            take(cache, truth.events[followed])
            followed += 1
        elif act in ("list", "compare"):
            cache.replace(list(truth.objects.values()), truth.version)
            ended = {object["metadata"]["uid"] for kind, object in truth.events if kind == "DELETED"}
            if act == "list":  # after a comparison the watch goes on where it was, behind the list
                followed = len(truth.events)
        assert not ended & {each["metadata"]["uid"] for each in cache}
    for event in truth.events[followed:]:
        take(cache, event)

    assert {each["metadata"]["name"]: each for each in cache} == truth.objects


def take(cache: ObjectCache, event: tuple[str, Any]) -> None:
    kind, object = event
    if kind == "DELETED":
        cache.saw_gone(object)
    else:
        cache.saw(object)
