"""Cases of all groups that are told when a document is read: by name and message, and nothing is changed."""

from collections.abc import Sequence
from typing import Any

import pytest

from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, Refused, Rejected
from tests.integrations.bosh.conformance.town import LAB, Document, Town, app, config, lab, manifest

AZS = [{"name": "z1"}, {"name": "z2"}]
VIPS = {"name": "pub", "type": "vip"}
POOL = {"name": "pool", "type": "vip", "subnets": [{"static": ["198.51.100.20-198.51.100.23"]}]}
DYNAMIC = {"name": "dyn", "type": "dynamic"}
ZONED = {"name": "zoned", "type": "dynamic", "subnets": [{"az": "z1"}]}
DEFAULTS = {"default": ["dns", "gateway"]}

CONFIGS: dict[str, tuple[str, BoshErrorKind, str]] = {
    "c19-reserved": (
        config(lab(reserved=["172.20.5.10"], static=["172.20.5.9-172.20.5.11"])),
        BoshErrorKind.NETWORK_STATIC_IP_OUT_OF_RANGE,
        "Static IP '172.20.5.10/32' is in network 'lab' reserved range",
    ),
    "c19-gateway": (
        config(lab(static=["172.20.5.1"])),
        BoshErrorKind.NETWORK_STATIC_IP_OUT_OF_RANGE,
        "Static IP '172.20.5.1/32' is in network 'lab' reserved range",
    ),
    "c20-block": (
        config(lab(static=["172.20.5.8/29"])),
        BoshErrorKind.NETWORK_STATIC_IP_OUT_OF_RANGE,
        "Static IP '172.20.5.15/32' is in network 'lab' reserved range",
    ),
    "c20-block-and-reserved": (
        config(lab(reserved=["172.20.5.10"], static=["172.20.5.8/29"])),
        BoshErrorKind.NETWORK_STATIC_IP_OUT_OF_RANGE,
        "Static IP '172.20.5.10/32' is in network 'lab' reserved range",
    ),
    "c22": (
        config(lab(reserved=["172.20.5.9-172.20.5.5"])),
        BoshErrorKind.NETWORK_INVALID_IP_RANGE_FORMAT,
        "Invalid IP range format: 172.20.5.9-172.20.5.5",
    ),
    "f6": (
        config(lab(az="z1"), azs=AZS, compilation={"network": "lab", "az": "z2"}),
        BoshErrorKind.JOB_NETWORK_MISSING_REQUIRED_AVAILABILITY_ZONE,
        "Compilation config refers to az 'z2' but network 'lab' has no matching subnet(s).",
    ),
    "i7": (
        config(
            lab(range="10.1.0.0/24", gateway="10.1.0.1", prefix=26, static=["10.1.0.64", "10.1.0.128", "10.1.0.191"])
        ),
        BoshErrorKind.NETWORK_PREFIX_STATIC_IP_NOT_BASE_ADDRESS,
        "Static IP '10.1.0.191/32' of network 'lab' is no base address of prefix '26'",
    ),
    "i8": (
        config({"range": "10.1.0.0/24", "gateway": "10.1.0.1", "prefix": 23}),
        BoshErrorKind.NETWORK_PREFIX_SIZE_TOO_BIG,
        "Prefix size '23' is larger than range prefix '24'",
    ),
    "i9-prefixes": (
        config(LAB, {"range": "10.1.0.0/24", "gateway": "10.1.0.1", "prefix": 28}),
        BoshErrorKind.NETWORK_PREFIX_SIZES_DIFFER,
        "Network 'lab' has subnets that define different prefixes",
    ),
    "i9-families": (
        config(LAB, {"range": "2001:db8:5::/120", "gateway": "2001:db8:5::1"}),
        BoshErrorKind.NETWORK_PREFIX_SIZES_DIFFER,
        "Network 'lab' has subnets that define different prefixes",
    ),
    "i16": (
        config(more=[{"name": "made", "managed": True, "subnets": [{"name": "a"}, {"name": "a"}]}]),
        BoshErrorKind.GENERIC,
        "subnet names within a managed network must be unique",
    ),
}


def on(*networks: Document, **group: Any) -> str:
    """Write a group on these networks, the first of which is the default."""
    first, *others = networks
    return manifest("alpha", app(networks=[{**DEFAULTS, **first}, *others], **group))


MANIFESTS: dict[str, tuple[str, BoshErrorKind, str]] = {
    "c2": (
        on({"name": "lab", "static_ips": ["172.20.5.10", "172.20.5.11"]}, instances=3),
        BoshErrorKind.INSTANCE_GROUP_NETWORK_INSTANCE_IP_MISMATCH,
        "Instance group 'app' has 3 instances but was allocated 2 static IPs in network 'lab'",
    ),
    "c3": (
        on({"name": "lab", "static_ips": ["172.20.5.10", "172.20.5.10"]}, instances=2),
        BoshErrorKind.JOB_INVALID_STATIC_IPS,
        "Instance group 'app' specifies static IP '172.20.5.10/32' more than once",
    ),
    "c4": (
        on({"name": "lab", "static_ips": ["172.20.5.9"]}),
        BoshErrorKind.INSTANCE_GROUP_NETWORK_INSTANCE_IP_MISMATCH,
        "Instance group 'app' with network 'lab' declares static ip '172.20.5.9/32', which belongs to no subnet",
    ),
    "d19": (
        on({"name": "lab"}, {"name": "lab"}),
        BoshErrorKind.NETWORK_RESERVATION_ALREADY_EXISTS,
        "on network 'lab', instance already has",
    ),
    "g3": (
        on({"name": "dyn", "static_ips": ["10.7.0.9"]}),
        BoshErrorKind.JOB_STATIC_IP_NOT_SUPPORTED_ON_DYNAMIC_NETWORK,
        "Instance group 'app' using dynamic network 'dyn' cannot specify static IP(s)",
    ),
    "g4": (
        on({"name": "zoned"}, azs=["z2"]),
        BoshErrorKind.JOB_NETWORK_MISSING_REQUIRED_AVAILABILITY_ZONE,
        "Instance group 'app' must specify availability zone that matches availability zones of network 'zoned'",
    ),
    "g5": (
        on({"name": "lab"}, {"name": "pub"}),
        BoshErrorKind.NETWORK_RESERVATION_IP_MISSING,
        "vip network 'pub'",
    ),
    "g9": (
        on({"name": "lab"}, {"name": "pool", "static_ips": ["198.51.100.20"]}),
        BoshErrorKind.NETWORK_RESERVATION_VIP_MISCONFIGURED,
        "IPs cannot be specified in both the instance group and the cloud config",
    ),
    "g11-default": (
        on({"name": "pool"}, {"name": "lab"}),
        BoshErrorKind.NETWORK_RESERVATION_VIP_DEFAULT_PROVIDED,
        "Can't provide any defaults since this is a VIP network",
    ),
    "g11-only": (
        manifest("alpha", app(network="pool")),
        BoshErrorKind.NETWORK_RESERVATION_VIP_DEFAULT_PROVIDED,
        "Can't provide any defaults since this is a VIP network",
    ),
}


def shown(error: Rejected, kind: BoshErrorKind) -> Sequence[str]:
    """Return what is told of one kind of fault; each has its place."""
    assert all(fault.place is not None for fault in error.faults)
    return [fault.message for fault in error.faults if fault.kind is kind]


@pytest.mark.parametrize(("text", "kind", "message"), CONFIGS.values(), ids=list(CONFIGS))
async def test_a_wrong_cloud_config_is_refused_and_the_old_one_stays(
    town: Town, text: str, kind: BoshErrorKind, message: str
) -> None:
    await town.upload(config())
    before = await town.ledger.last_change()
    with pytest.raises(Rejected) as caught:
        await town.upload(text)

    assert message in shown(caught.value, kind)
    assert await town.ledger.last_change() == before


@pytest.mark.parametrize(("text", "kind", "message"), MANIFESTS.values(), ids=list(MANIFESTS))
async def test_a_wrong_manifest_is_refused_before_anything_is_reserved(
    town: Town, text: str, kind: BoshErrorKind, message: str
) -> None:
    await town.upload(
        config(lab(static=["172.20.5.10-172.20.5.12"]), more=[VIPS, POOL, DYNAMIC, ZONED], azs=AZS),
    )
    before = await town.ledger.last_change()
    with pytest.raises((Rejected, Refused)) as caught:
        await town.deploy(text)

    assert isinstance(caught.value, Rejected)
    [told] = shown(caught.value, kind)
    assert message in told
    assert await town.ledger.last_change() == before
