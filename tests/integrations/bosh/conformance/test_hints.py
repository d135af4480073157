"""What the IaaS picked, as it is reported with a VM: addresses, on the dynamic networks of the instance."""

from typing import Any

import pytest

from tenure.integrations.bosh.model.bosh_errors import Rejected
from tenure.integrations.bosh.running_vms.vm_state import read_vm_state
from tenure.integrations.bosh.verbs import report_vm
from tenure.kernel.errors import Invalid
from tests.integrations.bosh.conformance.town import Town, app, config, manifest

EDGE = {"name": "edge", "type": "dynamic"}
OTHER = {"name": "other", "type": "dynamic"}


@pytest.mark.parametrize(
    ("hints", "why"),
    [
        ({"edge": "next door"}, "hints: 'next door', on network 'edge', is no address"),
        ({"edge": "10.0.0.0/24"}, "hints: '10.0.0.0/24', on network 'edge', is no address"),
        ({"edge": 7}, "hints: 7, on network 'edge', is no address"),
        ({"edge": None}, "hints: None, on network 'edge', is no address"),
        ({7: "10.0.0.9"}, "hints: the name of a network is needed, not 7"),
        (["edge"], "hints: a mapping of networks to addresses is needed, not ['edge']"),
        ({"lab": "10.0.0.9"}, "hints: 'lab' is no dynamic network of instance app/"),
        ({"other": "10.0.0.9"}, "its dynamic networks are edge"),
        ({"nowhere": "10.0.0.9"}, "hints: 'nowhere' is no dynamic network of instance app/"),
    ],
)
async def test_what_is_no_address_on_a_dynamic_network_is_refused_by_name(town: Town, hints: Any, why: str) -> None:
    await town.upload(config(more=[EDGE, OTHER]))
    on = [{"name": "lab", "default": ["dns", "gateway"]}, {"name": "edge"}]
    await town.deploy(manifest("alpha", app(networks=on)))
    before = await town.instances("alpha")
    with pytest.raises(Invalid) as caught:
        await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-1", hints=hints)

    assert why in caught.value.message
    assert caught.value.field == "hints"
    assert await town.instances("alpha") == before


async def test_addresses_are_written_as_everywhere(town: Town) -> None:
    await town.upload(config(more=[EDGE]))
    await town.deploy(manifest("alpha", app(network="edge")))
    made = await report_vm.commit(town.ledger, "alpha", "app/0", vm="vm-1", hints={"edge": "2001:DB8:0::9"})

    assert made.hints == {"edge": "2001:db8::9"}


def test_what_vms_say_of_networks_that_nobody_can_name_is_refused_with_its_place() -> None:
    said = '{"app/0": {"vm": "vm-1", "networks": {" lab": {"ip": "10.0.0.2"}, "lab": {"ip": "nowhere"}}}}'
    with pytest.raises(Rejected) as caught:
        read_vm_state(said, "state.json")

    assert [str(fault.place) for fault in caught.value.faults] == [
        "state.json:1:47 (app/0.networks. lab)", "state.json:1:81 (app/0.networks.lab.ip)"
    ]  # fmt: skip
