"""Documents: what is written is what is read back."""

import json

from hypothesis import given

from tenure.kernel.plan import edits
from tenure.kernel.plan.document import network_document, read_network
from tenure.kernel.plan.plan_model import Network
from tests.kernel.plans import net1, network
from tests.kernel.strategies import networks


@given(networks)
def test_any_network_survives_the_journey_through_json(original: Network) -> None:
    text = json.dumps(network_document(original))

    assert read_network(original.id, original.name, json.loads(text)) == original


@given(networks)
def test_the_same_network_is_always_written_the_same(original: Network) -> None:
    document = network_document(original)
    again = network_document(read_network(original.id, original.name, json.loads(json.dumps(document))))

    assert json.dumps(document) == json.dumps(again)


def test_a_document_from_before_notes_on_reserved_ranges_reads_and_is_written_with_them() -> None:
    plan = net1(
        edits.Reserve(network="net1", range="192.0.2.30", reason="printers"),
        edits.Preallocate(network="net1", owner="vm/a", address="192.0.2.9", slot="nic0"),
    )
    document = network_document(network(plan))
    for piece in (*document["subnets"][0]["reserved"], *document["preallocations"]):
        for later in ("labels", "description", "request"):
            del piece[later]

    read = read_network(1, "net1", json.loads(json.dumps(document)))

    assert read == network(plan)
    assert network_document(read)["subnets"][0]["reserved"] == [
        {"range": "192.0.2.30", "reason": "printers", "request": None, "labels": {}, "description": ""}
    ]


def test_a_document_can_be_read_by_people() -> None:
    document = network_document(network(net1()))

    assert document["subnets"][0]["cidr"] == "192.0.2.0/24"
    assert document["subnets"][0]["gateway"] == "192.0.2.1"
    assert document["subnets"][0]["pools"][0]["range"] == "192.0.2.10-192.0.2.100"
    assert document["subnets"][1]["keep_back"] == ["broadcast", "gateway", "network"]
