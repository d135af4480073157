"""Documents: what is written is what is read back."""

import json

from hypothesis import given

from tenure.kernel.configuration import Network
from tenure.kernel.documents import network_document, read_network
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


def test_a_document_can_be_read_by_people() -> None:
    document = network_document(network(net1()))

    assert document["subnets"][0]["cidr"] == "192.0.2.0/24"
    assert document["subnets"][0]["gateway"] == "192.0.2.1"
    assert document["subnets"][0]["pools"][0]["range"] == "192.0.2.10-192.0.2.100"
    assert document["subnets"][1]["keep_back"] == ["broadcast", "gateway", "network"]
