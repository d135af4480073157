"""Which pools there are, by name, and which of them a caller means."""

import pytest

from tenure.integrations.vmpool.lists.named_pools import named_settings, read_named_pools
from tenure.kernel.errors import Invalid

TWO = {"VM_POOLS": "gpu=192.0.2.10-192.0.2.12;spare=192.0.2.30,192.0.2.31", "NODE_NAME": "n", "VM_POOL_IPS": "10.0.0.1"}


def test_pools_are_read_in_their_order() -> None:
    assert list(read_named_pools(" b=10.0.0.1 ;\n a=10.0.0.2-10.0.0.3; ").items()) == [
        ("b", "10.0.0.1"),
        ("a", "10.0.0.2-10.0.0.3"),
    ]
    assert read_named_pools("") == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [("gpu", "NAME=ADDRESSES"), ("gpu=", "NAME=ADDRESSES"), ("A=10.0.0.1", "no name in Kubernetes"),
     ("a=10.0.0.1;a=10.0.0.2", "there twice"), ("=10.0.0.1", "no name in Kubernetes")],
)  # fmt: skip
def test_what_is_no_pool_is_refused(text: str, said: str) -> None:
    with pytest.raises(Invalid, match=f"^VM_POOLS: .*{said}"):
        read_named_pools(text)


def test_all_pools_of_the_environment_are_meant_unless_some_are_named() -> None:
    everyone = named_settings((), TWO)
    chosen = named_settings(("spare", "gpu"), TWO)

    assert [each.config_map_name for each in everyone] == ["gpu", "spare"]
    assert [len(each.pool_ips) for each in everyone] == [3, 2]
    assert [each.config_map_name for each in chosen] == ["spare", "gpu"]
    assert {each.node_name for each in everyone} == {"n"}


def test_a_name_may_bring_its_addresses() -> None:
    [own, known] = named_settings(("own=10.1.0.1-10.1.0.5", "gpu"), TWO, max_range_ips=2)

    assert (own.config_map_name, own.pool_ips) == ("own", ("10.1.0.1", "10.1.0.2"))
    assert known.pool_ips == ("192.0.2.10", "192.0.2.11")


@pytest.mark.parametrize(
    ("names", "said"),
    [(("other",), "no pool 'other': there are gpu, spare"), (("gpu", "gpu"), "named twice"),
     (("gpu", "copy=192.0.2.11"), "192.0.2.11 is in the pools 'gpu' and 'copy'")],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused(names: tuple[str, ...], said: str) -> None:
    with pytest.raises(Invalid, match=f"^pools: .*{said}"):
        named_settings(names, TWO)
