"""More stories that end in a refusal: VMs that are asked, addresses that change hands, errands, compiling, clouds."""

import json
from typing import Any

from tenure.integrations.bosh.cloud_config.managed_networks import WantedSubnet
from tenure.integrations.bosh.deployments_api import Deployments
from tenure.integrations.bosh.running_vms.vm_state import ask_command
from tenure.integrations.bosh.state.managed_records import CreatedSubnet
from tenure.integrations.bosh.verbs import compile_packages, errands, report_vm
from tenure.integrations.bosh.verbs.recreate import recreate
from tests.integrations.bosh.conformance.fleet import Fleet, own
from tests.integrations.bosh.conformance.town import Town, app, config, lab, manifest
from tests.integrations.bosh.refused_stories import Act, Refusal
from tests.integrations.bosh.wrong_documents import Wrong


async def _alpha(town: Town, **subnet: Any) -> Fleet:
    """Deploy alpha without a cloud config."""
    alpha = Fleet(town, "alpha")
    await alpha.run(_own(**subnet))
    return alpha


def _own(**subnet: Any) -> str:
    return own("alpha", app(), subnets=(lab(**subnet),))


async def vm_not_asked(town: Town) -> Act:
    await _alpha(town)
    return town.deploy(_own())


async def vm_silent(town: Town) -> Act:
    alpha = await _alpha(town)
    alpha.vms[await alpha.name_of("app", 0)] = None
    return alpha.deploy(_own())


async def vm_of_no_instance(town: Town) -> Act:
    alpha = await _alpha(town)
    alpha.vms["web/0"] = None
    return alpha.deploy(_own())


async def vm_told_of_twice(town: Town) -> Act:
    alpha = await _alpha(town)
    alpha.vms["app/0"] = None
    return alpha.deploy(_own())


async def vm_with_another_prefix(town: Town) -> Act:
    alpha = await _alpha(town, prefix=30)
    alpha.vms[await alpha.name_of("app", 0)]["networks"]["lab"]["ip"] = "172.20.5.4"
    return alpha.deploy(_own(prefix=30))


async def vm_before_its_address_is_handed_over(town: Town) -> Act:
    await town.upload(config(lab(static=["172.20.5.10-172.20.5.11"])))
    await town.run(manifest("alpha", app(static_ips=["172.20.5.10"])))
    await town.deploy(manifest("alpha", app(0), app(name="db", static_ips=["172.20.5.10"])), hand_over=True)
    return report_vm.commit(town.ledger, "alpha", "db/0", vm="vm-2")


async def hand_over_without_a_cloud_config(town: Town) -> Act:
    return town.deploy(_own(), hand_over=True)


async def command_that_fails(town: Town) -> Act:
    return ask_command("false")


async def errand_without_a_cloud_config(town: Town) -> Act:
    await _alpha(town)
    return errands.run(town.ledger, "alpha", "app")


async def errand_that_is_none(town: Town) -> Act:
    await town.upload(config())
    await town.run(manifest("alpha", app()))
    return errands.run(town.ledger, "alpha", "app")


async def errand_on_a_changed_network(town: Town) -> Act:
    await town.upload(config())
    await town.deploy(manifest("alpha", app(lifecycle="errand")))
    await town.upload(config(lab(range="172.20.6.0/28", gateway="172.20.6.1")))
    return errands.run(town.ledger, "alpha", "app")


async def compiling_nowhere(town: Town) -> Act:
    await town.upload(config())
    deployed = await town.run(manifest("alpha", app()))
    return compile_packages.begin(town.ledger, "alpha", deployed.plan)


async def ignored_and_recreated(town: Town) -> Act:
    await town.upload(config())
    await town.run(manifest("alpha", app()))
    await report_vm.ignore(town.ledger, "alpha", "app/0")
    return recreate(town.ledger, "alpha", "app/0")


async def network_deleted_without_a_cloud(town: Town) -> Act:
    return Deployments(town.ledger).delete_network("lab")


class Careless:
    """A cloud that makes subnets whose gateways are elsewhere."""

    async def create_subnet(self, wanted: WantedSubnet) -> CreatedSubnet:
        """Make a subnet that nobody can use."""
        return CreatedSubnet(f"cid-{wanted.name}", range="10.61.0.0/28", gateway="10.62.0.1")

    async def delete_subnet(self, cid: str) -> None:
        """Delete it."""


async def subnet_without_its_gateway(town: Town) -> Act:
    made = {"name": "made", "managed": True, "subnets": [{"name": "s1"}]}
    await town.upload(config(more=[made]))
    return town.deploy(manifest("alpha", app(network="made")), cloud=Careless())


async def plan_before_the_cloud_chose(town: Town) -> Act:
    await town.upload(config(more=[{"name": "made", "managed": True, "subnets": [{"name": "s1"}]}]))
    return Deployments(town.ledger, cloud=Careless()).plan(manifest("alpha", app(network="made")))


async def gateway_in_a_held_block(town: Town) -> Act:
    await town.upload(config({"range": "10.10.0.0/24", "gateway": "10.10.0.1", "prefix": 28}))
    await town.run(manifest("alpha", app()))
    return town.upload(config({"range": "10.10.0.24/29", "gateway": "10.10.0.25"}))


AFTERWARDS = [
    Refusal(
        "Failed to reserve IP for 'app/UUID (0)' for manual network 'made': its range is not known yet, the cloud "
        "chooses it when the network is made [DirectorError 100]",
        plan_before_the_cloud_chose,
    ),
    Refusal(
        "Range '10.10.0.16/28' of network 'lab' is held in units that do not fit into a subnet, and its gateway or a "
        "static IP lies there: release it first [DirectorError 100]",
        gateway_in_a_held_block,
    ),
    Refusal(
        "Failed to reserve IP '172.20.5.10/32' for instance 'db/UUID (0)': it waits for 'app/UUID' to hand it over. "
        "Report that its VM is replaced or gone. [NetworkReservationAlreadyInUse 130008]",
        vm_before_its_address_is_handed_over,
    ),
    Refusal("No cloud is known that could delete a network [DirectorError 100]", network_deleted_without_a_cloud),
    Refusal(
        "The VMs of these instances were not asked: 'app/UUID (0)'. Only a deploy that fixes them makes them anew. "
        "[DirectorError 100]",
        vm_not_asked,
    ),
    Refusal(
        "The VMs of these instances did not answer: 'app/UUID (0)'. Only a deploy that fixes them makes them anew. "
        "[DirectorError 100]",
        vm_silent,
    ),
    Refusal("There is no instance 'web/0' [DirectorError 100]", vm_of_no_instance),
    Refusal(
        "Addresses are handed over only where there is a cloud config [DirectorError 100]",
        hand_over_without_a_cloud_config,
    ),
    Refusal("Instance 'app/UUID' is told of twice [DirectorError 100]", vm_told_of_twice),
    Refusal(
        "Subnet Prefix 30 and ip reservation prefix 32 do not match [NetworkReservationInvalidPrefix 130015]",
        vm_with_another_prefix,
    ),
    Refusal("VMs cannot be asked: the command 'false' ended with 1 [DirectorError 100]", command_that_fails),
    Refusal(
        "Deployment 'alpha' was deployed without a cloud config [DirectorError 100]", errand_without_a_cloud_config
    ),
    Refusal(
        "Instance group 'app' is not an errand. To mark an instance group as an errand set its lifecycle to 'errand' "
        "in the deployment manifest. [DirectorError 100]",
        errand_that_is_none,
    ),
    Refusal(
        "Failed to reserve IP for 'app/UUID (0)': the cloud config changed since deployment 'alpha' was deployed. "
        "Deploy it again. [NetworkReservationError 130010]",
        errand_on_a_changed_network,
    ),
    Refusal(
        "Required property 'compilation' was not specified in a cloud config [DirectorError 100]", compiling_nowhere
    ),
    Refusal(
        "You are trying to change the state of the ignored instance 'app/UUID'. This operation is not allowed. You "
        "need to unignore it first. [DeploymentIgnoredInstancesModification 190020]",
        ignored_and_recreated,
    ),
]

UNDONE = [
    Refusal(
        "The cloud made subnet 's1' of network 'made' unusable: not everything that it keeps lies in "
        "10.61.0.0/28 [DirectorError 100]",
        subnet_without_its_gateway,
    ),
]
"""These leave something in the log: what was made in the cloud is deleted again."""


def _state(**lab_said: Any) -> str:
    return json.dumps({"app/0": {"vm": "vm-1", "networks": {"lab": {"ip": "172.20.5.2", **lab_said}}}})


STATES = [
    Wrong("'app' names no instance: write group/index or group/uuid [DirectorError 100]", '{"app": null}'),
    Wrong(
        "Property 'app/0' must be a mapping, or null for a VM that did not answer [DirectorError 100]",
        '{"app/0": "gone"}',
    ),
    Wrong(
        "Property 'app/0.networks.lab' must be a mapping [DirectorError 100]",
        '{"app/0": {"vm": "vm-1", "networks": {"lab": "172.20.5.2"}}}',
    ),
    Wrong("Invalid network type 'magic' [DeploymentInvalidNetworkType 190010]", _state(type="magic")),
    Wrong("Invalid IP or CIDR format: x [NetworkInvalidIpRangeFormat 160010]", _state(ip="x")),
]
"""What VMs cannot have said."""
