"""What a cloud answers for a managed network is held to the rules of a cloud config; else nothing is left of it."""

import pytest

from tenure.integrations.bosh.model.bosh_errors import Refused, Rejected
from tenure.integrations.bosh.state.managed_records import CreatedSubnet, load_managed
from tests.integrations.bosh.conformance.recorder import Recorder, managed_config
from tests.integrations.bosh.conformance.town import Town, app, manifest

OPEN = [{"name": "s1", "netmask_bits": 28}, {"name": "s2", "netmask_bits": 28}]
FIRST = CreatedSubnet("cid-s1", "10.61.0.0/28", "10.61.0.1")
SECOND = CreatedSubnet("cid-s2", "10.61.0.16/28", "10.61.0.17")
UNUSABLE = {
    "another family": (CreatedSubnet("cid-s2", "fd00::/120", "fd00::1"), "define different prefixes"),
    "overlapping": (CreatedSubnet("cid-s2", "10.61.0.8/29"), "10.61.0.8/29 overlaps subnet 's1', which is 10.61.0."),
    "same cid": (CreatedSubnet("cid-s1", "10.61.0.16/28"), "cid 'cid-s1' is that of subnet 's1'"),
    "nothing": (None, "a CreatedSubnet is needed, not None"),
    "a mapping": ({"cid": "cid-s2"}, "a CreatedSubnet is needed, not {'cid': 'cid-s2'}"),
    "no cid": (CreatedSubnet("", "10.61.0.16/28"), "cid: a name must not be empty"),
}
DEPLOYED = manifest("alpha", app(network="made"))


@pytest.mark.parametrize("how", UNUSABLE)
async def test_an_answer_that_no_cloud_config_could_say_leaves_nothing(town: Town, how: str) -> None:
    answer, why = UNUSABLE[how]
    cloud = Recorder(answers={"s1": FIRST, "s2": answer})
    await town.upload(managed_config(*OPEN))
    with pytest.raises(Refused, match="The cloud made subnet 's2' of network 'made' unusable") as caught:
        await town.deploy(DEPLOYED, cloud=cloud)
    assert why in caught.value.message
    assert await load_managed(town.ledger) == {}
    deleted = ["cid-s2", "cid-s1"] if how in ("another family", "overlapping") else ["cid-s1"]
    assert cloud.asked[2:] == [f"delete {cid}" for cid in deleted]

    cloud.answers["s2"] = SECOND  # nobody waits for the one before
    await town.deploy(DEPLOYED, cloud=cloud)
    assert await town.has("alpha") == {"app/0": {"made": "10.61.0.2"}}


async def test_a_subnet_with_the_cid_of_one_in_use_does_not_take_that_away(town: Town) -> None:
    cloud = Recorder(answers={"s1": FIRST, "s2": UNUSABLE["same cid"][0]})
    await town.upload(managed_config(OPEN[0]))
    await town.run(DEPLOYED, cloud=cloud)
    await town.upload(managed_config(*OPEN))
    with pytest.raises(Refused, match="is that of subnet 's1'"):
        await town.deploy(DEPLOYED, cloud=cloud)

    assert cloud.asked == ["create s1 28", "create s2 28"]
    assert await town.has("alpha") == {"app/0": {"made": "10.61.0.2"}}


@pytest.mark.parametrize(("bits", "more"), [(0, {}), (128, {}), (-1, {}), (33, {"range": "10.60.1.0/28"})])
async def test_netmask_bits_leave_room_for_two_addresses(town: Town, bits: int, more: dict[str, str]) -> None:
    with pytest.raises(Rejected, match=r"Property 'networks\[1\].subnets\[0\].netmask_bits' must be from 1 to "):
        await town.upload(managed_config({"name": "s1", "netmask_bits": bits, **more}))


async def test_netmask_bits_of_either_family_are_asked_for_where_the_cloud_chooses(town: Town) -> None:
    cloud = Recorder(answers={"s1": CreatedSubnet("cid-s1", "fd00::/120", "fd00::1")})
    await town.upload(managed_config({"name": "s1", "netmask_bits": 120}))
    await town.deploy(DEPLOYED, cloud=cloud)

    assert await town.has("alpha") == {"app/0": {"made": "fd00::2"}}


@pytest.mark.parametrize(
    ("prefix", "answer", "why"),
    [
        (64, CreatedSubnet("cid-s1", "10.61.0.0/28"), "prefix 64 is longer than an address of its range 10.61.0.0/28"),
        (24, CreatedSubnet("cid-s1", "10.61.0.0/28"), "prefix 24 is shorter than that of its range 10.61.0.0/28"),
        (64, CreatedSubnet("cid-s1", "fd00::/120"), "prefix 64 is shorter than that of its range fd00::/120"),
    ],
)
async def test_a_range_that_the_prefix_does_not_fit_is_refused_and_leaves_nothing(
    town: Town, prefix: int, answer: CreatedSubnet, why: str
) -> None:
    cloud = Recorder(answers={"s1": answer})
    await town.upload(managed_config({"name": "s1", "prefix": prefix}))
    with pytest.raises(Refused, match="The cloud made subnet 's1' of network 'made' unusable") as caught:
        await town.deploy(DEPLOYED, cloud=cloud)

    assert why in caught.value.message
    assert await load_managed(town.ledger) == {}
    assert cloud.asked == ["create s1 None", "delete cid-s1"]
