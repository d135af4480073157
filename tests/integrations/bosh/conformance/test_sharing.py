"""A: who owns an address, and who shares the addresses of a site."""

import pytest

from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused
from tenure.integrations.bosh.verbs import report_vm
from tests.integrations.bosh.conformance.town import Town, app, config, lab, manifest

STATIC = {"static": ["172.20.5.10-172.20.5.12"]}


async def test_a1_deployments_share_one_range(town: Town) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app()))
    await town.run(manifest("beta", app()))

    assert (await town.tails("alpha"), await town.tails("beta")) == ({"app/0": ".2"}, {"app/0": ".3"})


async def test_a2_a_static_ip_of_another_deployment_is_refused_by_name_and_nothing_is_taken(town: Town) -> None:
    await town.upload(config(lab(**STATIC)))
    await town.run(manifest("alpha", app(static_ips=["172.20.5.10"])))
    [holder] = await town.instances("alpha")
    with pytest.raises(Refused) as caught:
        await town.run(manifest("beta", app(static_ips=["172.20.5.10"])))

    assert caught.value.kind is BoshErrorKind.NETWORK_RESERVATION_ALREADY_IN_USE
    assert "Failed to reserve IP '172.20.5.10/32' for instance 'app/" in caught.value.message
    assert caught.value.message.endswith(f"already reserved by instance '{holder.name}' from deployment 'alpha'")
    assert await town.instances("beta") == []


async def test_a3_what_a_deleted_deployment_had_is_free(town: Town) -> None:
    await town.upload(config(lab(**STATIC)))
    await town.run(manifest("alpha", app(static_ips=["172.20.5.10"])))
    [left] = await report_vm.delete(town.ledger, "alpha")
    await report_vm.lose(town.ledger, "alpha", left.name)
    await report_vm.delete(town.ledger, "alpha")
    await town.run(manifest("beta", app(static_ips=["172.20.5.10"])))

    assert await town.tails("beta") == {"app/0": ".10"}


async def test_a5_deploying_again_reserves_nothing_twice(town: Town) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app()))
    again = await town.deploy(manifest("alpha", app()))

    assert not again.changes
    assert len(await town.ledger.holdings("lab")) == 1


async def test_a6_networks_over_each_other_share_their_addresses(town: Town) -> None:
    twin = {"name": "lab2", "type": "manual", "subnets": [lab()]}
    await town.upload(config(more=[twin]))
    await town.run(manifest("alpha", app(), app(name="other", network="lab2")))

    assert await town.has("alpha") == {"app/0": {"lab": "172.20.5.2"}, "other/0": {"lab2": "172.20.5.3"}}
