"""Whom an upload would move is told before anybody deploys, and is what the next deploy does."""

from typing import Any

import pytest

from tenure.integrations.bosh.cloud_config.site_survey import moved_by_upload
from tests.integrations.bosh.conformance.town import Town, app, config, lab, manifest

THREE = manifest("alpha", app(2), app(name="fixed", static_ips=["172.20.5.10"]))
STATIC = {"static": ["172.20.5.10-172.20.5.11"]}

CHANGES: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "nothing": ({}, {}),
    "dns": ({"dns": ["10.0.0.53"]}, {}),
    "wider": ({"range": "172.20.5.0/27"}, {}),
    "reserved": ({"reserved": ["172.20.5.3"]}, {"app/1": "it is reserved in subnet 172.20.5.0/28 now"}),
    "gateway": ({"gateway": "172.20.5.2"}, {"app/0": "it is the gateway of subnet 172.20.5.0/28 now"}),
    "name server": (
        {"dns": ["172.20.5.2"]},
        {
            "app/0": "it is kept back in subnet 172.20.5.0/28 now: for DNS, Tenure's own host, or as first or last "
            "address"
        },
    ),
    "static": (
        {"static": ["172.20.5.2", "172.20.5.10"]},
        {"app/0": "it is among the static addresses of subnet 172.20.5.0/28 now, and nobody asked for it by name"},
    ),
    "range": (
        {"range": "172.20.6.0/28", "gateway": "172.20.6.1", "static": ["172.20.6.10"]},
        dict.fromkeys(("app/0", "app/1", "fixed/0"), "no subnet of network 'lab' has it any more"),
    ),
}


async def told(town: Town, text: str) -> dict[str, str]:
    """Return whom a config would move, and why."""
    moved = await moved_by_upload(town.ledger, "default", text)
    return {f"{each.instance.group}/{each.instance.index}": each.reason for each in moved}


@pytest.mark.parametrize(("change", "expected"), CHANGES.values(), ids=list(CHANGES))
async def test_whom_an_upload_would_move_is_whom_the_next_deploy_moves(
    town: Town, change: dict[str, Any], expected: dict[str, str]
) -> None:
    await town.upload(config(lab(**STATIC)))
    await town.run(THREE)
    before = await town.has("alpha")
    after_config = config(lab(**{**STATIC, **change}))
    reasons = await told(town, after_config)
    await town.upload(after_config)
    if change.get("range") == "172.20.6.0/28":
        await town.run(THREE.replace("172.20.5.10", "172.20.6.10"))
    else:
        await town.run(THREE)
    after = await town.has("alpha")

    assert reasons == expected
    assert {name for name in after if after[name] != before[name]} == set(expected)


async def test_a_static_address_that_is_static_no_more_is_told_though_no_deploy_would_do(town: Town) -> None:
    await town.upload(config(lab(**STATIC)))
    await town.run(THREE)

    assert await told(town, config(lab(static=["172.20.5.11"]))) == {
        "fixed/0": "it is no longer among the static addresses of subnet 172.20.5.0/28"
    }


async def test_a_zone_that_a_subnet_leaves_moves_who_is_in_it(town: Town) -> None:
    azs = [{"name": "z1"}, {"name": "z2"}]
    one, other = lab(azs=["z1", "z2"]), {"range": "172.20.9.0/28", "gateway": "172.20.9.1", "azs": ["z2"]}
    await town.upload(config(one, other, azs=azs))
    await town.run(manifest("alpha", app(2, azs=["z1", "z2"])))

    reasons = await told(town, config(lab(azs=["z1"]), other, azs=azs))
    assert reasons == {"app/1": "subnet 172.20.5.0/28 serves availability zone 'z2' no more"}


async def test_networks_that_go_become_dynamic_or_hand_out_prefixes_move_everybody(town: Town) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app()))
    dynamic = "networks: [{name: lab, type: dynamic}]"

    assert await told(town, config({"range": "10.0.0.0/28", "gateway": "10.0.0.1"}, name="x")) == {
        "app/0": "network 'lab' is in no cloud config any more"
    }
    assert await told(town, dynamic) == {"app/0": "network 'lab' is dynamic now"}
    assert await told(town, config(lab(prefix=30))) == {
        "app/0": "subnet 172.20.5.0/28 hands out prefixes of length 30 now"
    }


async def test_d12_a_renamed_network_moves_nobody_before_the_upload_and_after(town: Town) -> None:
    await town.upload(config(lab(**STATIC)))
    await town.run(THREE)
    renamed = config(lab(**STATIC), name="lab9")

    assert await told(town, renamed) == {}
    await town.upload(renamed)
    assert await told(town, renamed) == {}
    assert set(await told(town, config(lab(static=["172.20.5.11"]), name="lab9"))) == {"fixed/0"}


async def test_vips_stay_while_they_are_in_a_pool_or_named(town: Town) -> None:
    def with_pool(pool: str) -> str:
        return config(more=[{"name": "out", "type": "vip", "subnets": [{"static": [pool]}]}])

    on = [{"name": "lab", "default": ["dns", "gateway"]}, {"name": "out"}]
    await town.upload(with_pool("198.51.100.7"))
    await town.run(manifest("alpha", app(networks=on)))

    assert await told(town, with_pool("198.51.100.6-198.51.100.8")) == {}
    assert await told(town, with_pool("198.51.100.8")) == {
        "app/0": "it is in no pool of vip network 'out' for its availability zone any more"
    }
    named = config(more=[{"name": "out", "type": "vip"}])
    assert set(await told(town, named)) == {"app/0"}


async def test_who_leaves_is_not_moved(town: Town) -> None:
    await town.upload(config())
    await town.run(manifest("alpha", app(2)))
    await town.deploy(manifest("alpha", app(1)))

    assert set(await told(town, config(lab(reserved=["172.20.5.2-172.20.5.3"])))) == {"app/0"}
