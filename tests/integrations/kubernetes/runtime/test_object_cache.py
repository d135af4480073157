"""A cache of objects never goes back in time, whatever comes late, twice, or first by its own hand."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import hypothesis.strategies as st
from hypothesis import example, given, settings

from tenure.integrations.kubernetes.runtime.object_cache import ObjectCache
from tenure.integrations.kubernetes.runtime.resource_types import Object
from tests.profiles import examples


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

    with cache.reading_list() as least:
        cache.replace([made("a", 40)], version=50, least=least)

    assert [each["metadata"]["resourceVersion"] for each in cache] == ["40"]
    assert cache.saw(made("c", 51)) is not None


def test_a_restored_server_that_has_written_much_since_is_believed() -> None:
    """Its version is past that of the cache; an object in it is older than the cache has it, which cannot be."""
    cache = ObjectCache()
    cache.replace([made("a", 90)], version=100)
    cache.replace([made("a", 40)], version=120)

    assert [each["metadata"]["resourceVersion"] for each in cache] == ["40"]


def test_a_list_that_was_read_before_the_watch_brought_a_deletion_does_not_undo_it() -> None:
    cache = ObjectCache()
    cache.replace([made("x", 50)], version=60)
    with cache.reading_list() as least:
        listed = [made("x", 50)]  # as of 100
        cache.saw_gone(made("x", 105))
        cache.passed(105)
        assert cache.replace(listed, version=100, least=least) == []

    assert len(cache) == 0


def test_the_answer_to_a_write_that_comes_after_the_objects_end_does_not_bring_it_back() -> None:
    cache = ObjectCache()
    cache.replace([made("x", 50)], version=60)
    cache.saw_gone(made("x", 105))
    cache.passed(105)

    assert cache.saw(made("x", 104)) is None


def test_a_deletion_that_is_answered_after_the_watch_brought_it_is_not_remembered() -> None:
    cache = ObjectCache()
    cache.replace([made("x", 50)], version=60)
    cache.saw_gone(made("x", 61))
    cache.passed(61)
    cache.saw_gone(made("x", 50), answered=True)

    assert cache._gone == {}


def test_a_list_from_before_an_object_was_written_does_not_make_its_deletion_forgotten() -> None:
    cache = ObjectCache()
    cache.saw(made("x", 70))
    cache.saw_gone(made("x", 70), answered=True)
    cache.replace([], version=60)

    assert cache.saw(made("x", 70)) is None  # the watch brings what the list was too old for


def test_an_indexer_may_give_a_value_twice() -> None:
    cache = ObjectCache({"pool": lambda each: ["x", "x"]})
    cache.saw(made("a", 1))
    cache.saw(made("a", 2))
    cache.saw_gone(made("a", 3))

    assert cache.by_index("pool", "x") == []


def test_an_object_that_an_indexer_cannot_read_is_in_the_cache_and_in_no_index() -> None:
    cache = ObjectCache({"pool": lambda each: [each["metadata"]["labels"]["pool"]]})
    deltas = cache.replace([made("a", 1, pool="x"), made("b", 2), made("c", 3, pool="x")], version=9)

    assert [delta.key[1] for delta in deltas] == ["a", "b", "c"]
    assert [each["metadata"]["name"] for each in cache.by_index("pool", "x")] == ["a", "c"]
    cache.saw(made("b", 10, pool="x"))
    assert len(cache.by_index("pool", "x")) == 3


def test_an_object_that_was_changed_by_its_reader_leaves_nothing_in_an_index() -> None:
    cache = ObjectCache({"pool": lambda each: [each["metadata"]["labels"]["pool"]]})
    object = made("a", 1, pool="x")
    cache.saw(object)
    object["metadata"]["labels"]["pool"] = "y"
    cache.saw_gone(made("a", 2))

    assert cache.by_index("pool", "x") == []


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
        st.sampled_from(
            [
                *("write", "delete", "own write", "own delete", "late write", "late delete", "answer", "watch"),
                *("take list", "apply list", "take comparison", "apply comparison"),
            ]
        ),
        st.sampled_from("ab"),
    ),
    max_size=40,
)


class Story:
    """A server, a cache that follows it, and what is on its way from one to the other."""

    def __init__(self) -> None:
        self.truth, self.cache = Truth(), ObjectCache()
        self.followed = 0
        """How many events the watch has brought."""
        self.answers: list[Callable[[], object]] = []
        self.lists: dict[str, tuple[ExitStack, int, list[Object], int, int]] = {}
        self.ended: set[str] = set()
        """Objects of which the cache has heard that they are gone."""

    def act(self, act: str, name: str) -> None:
        word, _, subject = act.partition(" ")
        if act == "watch":
            self.watch()
        elif act == "answer":
            if self.answers:
                self.answers.pop(0)()
        elif word == "take":
            self.take_list(subject)
        elif word == "apply":
            self.apply_list(subject)
        else:
            self.write(name, word) if act.endswith("write") else self.delete(name, word)
        assert not self.ended & {each["metadata"]["uid"] for each in self.cache}

    def write(self, name: str, word: str) -> None:
        written = self.truth.write(name)
        if word == "own":
            self.cache.saw(written)
            assert self.cache.get(("n", name)) == written
        elif word == "late":
            self.answers.append(lambda: self.cache.saw(written))

    def delete(self, name: str, word: str) -> None:
        gone = self.truth.delete(name)
        if gone is None:
            return
        if word == "own":
            self.deletion_answered(gone)
        elif word == "late":
            self.answers.append(lambda: self.deletion_answered(gone))

    def deletion_answered(self, gone: Object) -> None:
        self.cache.saw_gone(gone, answered=True)
        self.ended.add(gone["metadata"]["uid"])

    def watch(self) -> None:
        if "list" in self.lists or self.followed == len(self.truth.events):
            return  # while the informer lists, it does not watch
        kind, object = self.truth.events[self.followed]
        take(self.cache, (kind, object))
        self.cache.passed(int(object["metadata"]["resourceVersion"]))
        self.followed += 1
        if kind == "DELETED":
            self.ended.add(object["metadata"]["uid"])

    def take_list(self, subject: str) -> None:
        if subject not in self.lists:
            stack, truth = ExitStack(), self.truth
            least = stack.enter_context(self.cache.reading_list())
            taken = (stack, least, list(truth.objects.values()), truth.version, len(truth.events))
            self.lists[subject] = taken

    def apply_list(self, subject: str) -> None:
        if subject not in self.lists:
            return
        stack, least, objects, version, events = self.lists.pop(subject)
        with stack:
            self.cache.replace(objects, version, least=least)
            dead = (object for kind, object in self.truth.events[:events] if kind == "DELETED")
            self.ended |= {object["metadata"]["uid"] for object in dead}
        if subject == "list":  # after a comparison the watch goes on where it was, behind the list
            self.cache.passed(version)
            self.followed = events


def on_a(*acts: str) -> list[tuple[str, str]]:
    return [(act, "a") for act in acts]


# The watch brings a deletion while an older list is on its way, and before the answer to an older write.
@example(on_a("write", "watch", "take comparison", "delete", "watch", "apply comparison"))
@example(on_a("late write", "delete", "watch", "watch", "answer"))
@given(ACTS)
@settings(max_examples=examples(20))
def test_in_whatever_order_answers_events_and_lists_come_the_cache_ends_as_the_server(
    acts: list[tuple[str, str]],
) -> None:
    story = Story()
    for act, name in acts:
        story.act(act, name)
    for act in ["apply list", "apply comparison", *["answer"] * len(acts), *["watch"] * len(acts)]:
        story.act(act, "a")

    assert {each["metadata"]["name"]: each for each in story.cache} == story.truth.objects
    assert (story.cache._gone, story.cache._ended) == ({}, set())  # what is not needed any more is forgotten


def take(cache: ObjectCache, event: tuple[str, Any]) -> None:
    kind, object = event
    if kind == "DELETED":
        cache.saw_gone(object)
    else:
        cache.saw(object)
