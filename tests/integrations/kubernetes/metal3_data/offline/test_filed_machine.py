"""Which machine is rendered for: its number and namespace, and what the files do not know of it."""

from pathlib import Path

import pytest

from tenure.integrations.kubernetes.metal3_data.offline.filed_machine import MachineNames, facts_of, namespace_of
from tenure.integrations.kubernetes.metal3_data.offline.object_files import FiledObjects
from tenure.integrations.kubernetes.metal3_data.template.template_model import ObjectSort
from tenure.kernel.errors import Invalid
from tests.integrations.kubernetes.metal3_data.offline.files import a_machine_s_data, an_object, filed


def test_a_machine_without_data_gets_the_lowest_number_that_no_other_has(tmp_path: Path) -> None:
    """With the number of another machine, it would get that machine's claims and addresses."""
    files = filed(tmp_path, a_machine_s_data("a", 0), a_machine_s_data("b", 2), a_machine_s_data("c", 1, template="u"))

    def number(machine: str, index: int | None = None) -> int:
        return facts_of(files, MachineNames(machine, index=index), "t", "default").facts.index

    assert (number("new"), number("b"), number("b", 7), number("new", 1)) == (1, 2, 7, 1)
    with pytest.raises(Invalid, match="index: 2 is that of another machine, by Metal3Data 't-of-b'"):
        number("new", 2)


@pytest.mark.parametrize(
    "indexes",
    [
        {"a": 0, "b": 2},
        [{"name": "a", "index": 0}, {"name": "b", "index": 2}],
        {"0": "a", "2": "b"},
        {"a": 0, "b": 2, "c": "text", "d": None, "e": -1, "9" * 500: "f"},
    ],
)
def test_where_the_files_have_no_data_of_machines_the_template_s_status_says_their_numbers(
    tmp_path: Path, indexes: object
) -> None:
    template = {**an_object("Metal3DataTemplate", "t"), "status": {"indexes": indexes}}
    alone = filed(tmp_path, template)

    def number(machine: str, index: int | None = None, files: FiledObjects = alone) -> int:
        return facts_of(files, MachineNames(machine, index=index), "t", "default").facts.index

    assert (number("new"), number("b"), number("b", 7), number("new", 1)) == (1, 2, 7, 1)
    with pytest.raises(Invalid, match=r"index: 2 is that of another machine, by status\.indexes: 'b'"):
        number("new", 2)
    both = filed(tmp_path, template, a_machine_s_data("b", 0), a_machine_s_data("c", 1))
    assert (number("b", files=both), number("new", files=both)) == (0, 3)


@pytest.mark.parametrize("index", ["abc", -1, True, 1.5, 2**63])
def test_a_number_that_is_none_is_refused(tmp_path: Path, index: object) -> None:
    files = filed(tmp_path, a_machine_s_data("m", index))

    with pytest.raises(Invalid, match=r"Metal3Data 't-of-m': spec\.index: must be a whole number from 0, not "):
        facts_of(files, MachineNames("m"), "t", "default")


@pytest.mark.parametrize("name", ["", "a/b", "Rack3", "-a", "a b", "a" * 254])
def test_a_name_that_no_object_can_have_is_refused(name: str) -> None:
    with pytest.raises(Invalid, match="machine: must be the name of an object"):
        MachineNames(name)
    with pytest.raises(Invalid, match="host: must be the name of an object"):
        MachineNames("m", host=name)


def test_the_namespace_is_the_template_s_else_the_machine_s(tmp_path: Path) -> None:
    files = filed(
        tmp_path,
        an_object("Metal3Machine", "m", namespace="metal"),
        *(an_object("Metal3Machine", "n", namespace=name) for name in ("a", "b")),
    )

    assert [namespace_of(files, "own", "m"), namespace_of(files, "", "m"), namespace_of(files, "", "x")] == [
        "own", "metal", "default",
    ]  # fmt: skip
    with pytest.raises(Invalid, match="machine: 'n' is in several namespaces: a, b"):
        namespace_of(files, "", "n")


def test_what_the_files_do_not_know_of_a_machine_is_noted(tmp_path: Path) -> None:
    """A misspelt name would else be rendered with empty labels."""
    files = filed(tmp_path, an_object("Metal3Machine", "web-0"), *(an_object("BareMetalHost", f"h{n}") for n in "12"))

    assert facts_of(files, MachineNames("web-0", host="h1"), "t", "default").notes == ()
    assert facts_of(files, MachineNames("wbe-0"), "t", "default").notes == (
        "the files have no Metal3Machine 'wbe-0': nothing but its name is known",
        "the files have no BareMetalHost 'wbe-0': nothing but its name is known",
    )


def test_of_two_cards_of_one_name_the_first_is_meant(tmp_path: Path) -> None:
    """The Bare Metal Operator lists a card once for each of its IP addresses; CAPM3 takes the first, too."""
    cards = [{"name": "eno1", "mac": "0c:42:a1:5e:10:02"}, {"name": "eno1", "mac": "0c:42:a1:5e:10:03"}]
    host = {**an_object("BareMetalHost", "h"), "status": {"hardware": {"nics": cards}}}
    facts = facts_of(filed(tmp_path, host), MachineNames("m"), "t", "default").facts

    assert facts.interfaces == {"eno1": "0c:42:a1:5e:10:02"}
    assert facts.objects[ObjectSort.HOST].name == "h"


def test_the_cluster_is_that_of_the_machine_s_data_else_of_the_machine(tmp_path: Path) -> None:
    """A template of another cluster is refused here as it is by the operator."""
    own = {"cluster.x-k8s.io/cluster-name": "blue"}
    owner = [{"kind": "Machine", "name": "c"}]
    files = filed(
        tmp_path,
        a_machine_s_data("a", 0, labels=own),
        an_object("Metal3Machine", "b", labels=own),
        an_object("Metal3Machine", "c", ownerReferences=owner),
        an_object("Machine", "c", {"clusterName": "blue"}),
    )

    found = {name: facts_of(files, MachineNames(name), "t", "default").cluster for name in "abcd"}
    assert found == {"a": "blue", "b": "blue", "c": "blue", "d": ""}
