"""NICs in options: every form of ``--net``, every refusal, and what is written reads back."""

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tenure.integrations.ganeti.options.lexer import name_fault
from tenure.integrations.ganeti.options.nic_grammar import (
    MAX_INDEX,
    NicAdd,
    NicModify,
    NicOption,
    NicRemove,
    NicWish,
    read_net_add,
    read_net_modify,
)
from tenure.kernel.addressing.addresses import format_address
from tenure.kernel.errors import Invalid
from tests.kernel.strategies import names, positions

UUID = "0a1b2c3d-0000-4000-8000-00000000abcd"
READERS: list[Callable[[str], NicOption]] = [read_net_add, read_net_modify]

door_names = names.filter(
    lambda name: name_fault(name) is None and "\\" not in name and not name.startswith("-") and not name.isdecimal()
)
addresses = positions.map(format_address)
macs = st.lists(st.integers(0, 255), min_size=6, max_size=6).map(lambda parts: ":".join(f"{n:02x}" for n in parts))


@pytest.mark.parametrize(
    ("text", "index", "wish"),
    [
        (
            "0:ip0=192.0.2.4,ip1=pool,ip2=some-pool-name,network=network1",
            0,
            NicWish({0: "192.0.2.4", 1: "pool", 2: "some-pool-name"}, network="network1"),
        ),
        ("0:ip=pool,network=net1", 0, NicWish({0: "pool"}, network="net1")),
        ("1:ip=POOL", 1, NicWish({0: "pool"})),
        ("0:ip=Auto", 0, NicWish({0: "auto"})),
        ("0:ip=None", 0, NicWish({0: "none"})),
        ("0:ip1=2001:DB8::05,ip0=pool", 0, NicWish({0: "pool", 1: "2001:db8::5"})),
        ("0:ip=Web", 0, NicWish({0: "Web"})),
        ("0:mac=AA:00:00:11:22:33,mode=routed,link=rt", 0, NicWish(mac="aa:00:00:11:22:33", mode="routed", link="rt")),
        ("0:mac=Generate,vlan=.10,bridge=br5", 0, NicWish(mac="generate", vlan=".10", bridge="br5")),
        (f"7:network={UUID.upper()},name=eth0", 7, NicWish(network=UUID, name="eth0")),
        ("0:network=none,name=none,link=none,mode=none", 0, NicWish(network=None, name=None, link=None, mode=None)),
        ("0:-network,-vlan", 0, NicWish(network=None, vlan=None)),
        (r"0:link=a\,b", 0, NicWish(link="a,b")),
        ("0:", 0, NicWish()),
        (f"{MAX_INDEX}", MAX_INDEX, NicWish()),
    ],
)
def test_a_nic_of_a_new_instance_is_read(text: str, index: int, wish: NicWish) -> None:
    assert read_net_add(text) == NicAdd(index, wish)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0:modify,ip1=1.2.3.10", NicModify("0", NicWish({1: "1.2.3.10"}))),
        ("1:modify,ip1=none", NicModify("1", NicWish({1: "none"}))),
        ("1:modify,-ip1", NicModify("1", NicWish({1: "none"}))),
        ("0:modify,ip3=pool", NicModify("0", NicWish({3: "pool"}))),
        ("0:modify,ip1=none,ip0=192.0.2.7", NicModify("0", NicWish({0: "192.0.2.7", 1: "none"}))),
        ("0:ip=192.0.2.9", NicModify("0", NicWish({0: "192.0.2.9"}))),
        ("-1:mac=auto", NicModify("-1", NicWish(mac="auto"))),
        ("eth0:modify,name=none", NicModify("eth0", NicWish(name=None))),
        (f"{UUID.upper()}:link=br1", NicModify(UUID, NicWish(link="br1"))),
        ("-1:add,ip0=pool,ip1=1.2.3.4,network=test", NicAdd(None, NicWish({0: "pool", 1: "1.2.3.4"}, network="test"))),
        ("2:add,network=test", NicAdd(2, NicWish(network="test"))),
        ("0:add", NicAdd(0, NicWish())),
        ("add:ip=pool,network=test", NicAdd(None, NicWish({0: "pool"}, network="test"))),
        ("add", NicAdd(None, NicWish())),
        ("remove", NicRemove("-1")),
        ("-1:remove", NicRemove("-1")),
        ("3:remove", NicRemove("3")),
        ("eth0:remove", NicRemove("eth0")),
        (f"{UUID}:remove", NicRemove(UUID)),
    ],
)
def test_each_form_of_a_change_of_nics_is_read(text: str, expected: NicOption) -> None:
    assert read_net_modify(text) == expected


@pytest.mark.parametrize("form", ["0:{}", "0:modify,{}", "add:{}", "-1:add,{}"])
def test_m03_u24_ip_and_ip0_together_are_refused(form: str) -> None:
    with pytest.raises(Invalid, match="--net: 'ip=pool': ip and ip0 are the same; give one of them"):
        read_net_modify(form.format("ip0=192.0.2.4,ip=pool"))


@pytest.mark.parametrize("form", ["add:{}", "-1:add,{}", "1:add,{}"])
def test_m04_u24_a_gap_in_the_addresses_of_a_new_nic_is_refused(form: str) -> None:
    refused = "--net: 'ip2=pool': a gap: ip1 is not given"

    with pytest.raises(Invalid, match=refused):
        read_net_modify(form.format("ip0=pool,ip2=pool"))
    with pytest.raises(Invalid, match=refused):
        read_net_add("0:ip2=pool,ip=pool")
    with pytest.raises(Invalid, match="'ip1=pool': a gap: ip0 is not given"):
        read_net_add("0:ip1=pool")


@pytest.mark.parametrize("read", READERS)
def test_m19_u8_a_bare_network_is_refused_with_a_hint(read: Callable[[str], NicOption]) -> None:
    with pytest.raises(Invalid) as caught:
        read("0:ip=pool,network1")

    assert caught.value.message == ("--net: 'network1': unknown parameter 'network1'; did you mean network=network1")
    assert caught.value.field == "net"


def test_u23_indices_of_one_command_are_kept_as_written_for_the_shift() -> None:
    assert read_net_modify("0:modify,ip0=none,ip2=pool") == NicModify("0", NicWish({0: "none", 2: "pool"}))


@pytest.mark.parametrize("key", ["ip07", "ip-1", "ip1x", "IP0", "ip٣", "ip 1", "disk", "ip_0"])
@pytest.mark.parametrize("read", READERS)
def test_what_is_almost_a_parameter_is_unknown(read: Callable[[str], NicOption], key: str) -> None:
    with pytest.raises(Invalid, match=f"'{key}=pool': unknown parameter '{key}'; known are ip, ip0, ip1, …, network"):
        read(f"0:{key}=pool")


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("ip=192.0.2.300", "not an IP address"),
        ("ip=2001:db8::zz", "not an IP address, pool, none, auto or the name of a pool"),
        ("ip=192.0.2.0/24", "not a block or a range"),
        ("ip=192.0.2.1-192.0.2.9", "not a block or a range"),
        ("ip=fe80::1%eth0", "zone"),
        ("ip=", "ip needs a value, as in ip=pool"),
        ("ip", "ip needs a value"),
        ("no_ip", "ip needs a value"),
        ("ip=a=b", "a name holds no '='"),
        ("ip1=auto", "auto is for the first address only"),
        ("ip4096=pool", f"the highest is {MAX_INDEX}"),
        ("ip99999999999=pool", f"the highest is {MAX_INDEX}"),
        ("mac=aa:00:00:11:22", "not a MAC address"),
        ("mac=aa:00:00:11:22:3g", "not a MAC address"),
        ("mac=none", "not a MAC address"),
        ("-mac", "mac needs a value"),
        ("mode=wireless", "unknown mode"),
        ("mode", "mode needs a value"),
        ("link=", "link needs a value"),
        ("link=a b", "one word"),
        ("network=", "network needs a value"),
        ("network", "network needs a value"),
        ("network=10.0.0.0/24", "a network is written by its name or uuid"),
        ("name=", "name needs a value"),
        ("name=pool", "word of the options"),
        ("name=7", "digits alone are an index"),
        ("name=-x", "does not begin with '-'"),
    ],
)
@pytest.mark.parametrize("read", READERS)
def test_a_wrong_value_is_refused_by_option_piece_and_reason(
    read: Callable[[str], NicOption], said: str, reason: str
) -> None:
    with pytest.raises(Invalid) as caught:
        read(f"0:{said}")

    assert caught.value.message.startswith(f"--net: '{said}': ")
    assert reason in caught.value.message
    assert caught.value.field == "net"


def test_bridge_and_link_together_are_refused() -> None:
    with pytest.raises(Invalid, match="--net: 'bridge=br1': bridge and link are the same"):
        read_net_add("0:link=br0,bridge=br1")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("add:ip=pool", "'add' is not the index of a NIC"),
        ("-1:ip=pool", "'-1' is not the index of a NIC"),
        ("eth0:ip=pool", "'eth0' is not the index of a NIC"),
        ("00:ip=pool", "'00' is not the index of a NIC"),
        (":ip=pool", "'' is not the index of a NIC"),
        ("99999:ip=pool", f"the highest is {MAX_INDEX}"),
        ("0:add,ip=pool", "unknown parameter 'add'; a verb comes first"),
        ("0:ip=pool,ip=pool", "'ip' is given twice"),
        ("", "nothing is written"),
        ("0:ip=\x1b", "control character"),
    ],
)
def test_a_new_instance_counts_its_nics_from_0(text: str, reason: str) -> None:
    with pytest.raises(Invalid, match=f"^--net: .*{reason}"):
        read_net_add(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("0", "nothing to modify"),
        ("0:", "nothing to modify"),
        ("0:modify", "nothing to modify"),
        ("0:remove,ip=pool", "nothing may follow remove"),
        ("0:ip=pool,remove", "unknown parameter 'remove'; a verb comes first, as in NIC:remove"),
        ("0:add,modify", "unknown parameter 'modify'; a verb comes first"),
        ("0:remove=true", "unknown parameter 'remove'"),
        ("remove:eth0", "say which NIC first: NIC:remove"),
        ("modify:ip=pool", "say which NIC first: NIC:modify"),
        ("eth0:add,ip=pool", "added at an index, or at -1 after the last, not at 'eth0'"),
        ("-2:remove", "'-2' names no NIC"),
        ("-eth0:remove", "'-eth0' names no NIC"),
        ("007:remove", "'007' names no NIC"),
        (":remove", "'' names no NIC"),
        ("192.0.2.1:remove", "'192.0.2.1' names no NIC"),
        ("99999999999999999999:remove", f"the highest is {MAX_INDEX}"),
        ("a" * 5000, "at most 4096 characters"),
    ],
)
def test_a_wrong_change_of_nics_is_refused(text: str, reason: str) -> None:
    with pytest.raises(Invalid, match=f"^--net: .*{reason}"):
        read_net_modify(text)


ip_specs = st.lists(st.sampled_from(["pool", "none"]) | addresses | door_names, max_size=5)
words = st.fixed_dictionaries(
    {},
    optional={
        "network": st.none() | door_names | st.uuids().map(str),
        "mac": st.just("auto") | macs,
        "name": st.none() | door_names,
        "mode": st.none() | st.sampled_from(["bridged", "routed", "openvswitch"]),
        "link": st.none() | door_names,
        "vlan": st.none() | st.just(".10"),
    },
)


@given(ip_specs, words, st.integers(0, MAX_INDEX), st.randoms())
def test_a_written_nic_reads_back(ips: list[str], said: dict[str, str | None], index: int, order: Random) -> None:
    pieces = [f"ip{place}={spec}" for place, spec in enumerate(ips)]
    pieces += [f"{key}={'none' if value is None else value}" for key, value in said.items()]
    order.shuffle(pieces)
    written = ",".join(pieces)
    wish = NicWish(ips=dict(enumerate(ips)), **said)

    assert read_net_add(f"{index}:{written}") == NicAdd(index, wish)
    assert read_net_modify(f"add:{written}") == NicAdd(None, wish)
    if pieces:
        assert read_net_modify(f"{index}:add,{written}") == NicAdd(index, wish)
        assert read_net_modify(f"{index}:{written}") == NicModify(str(index), wish)
        assert read_net_modify(f"-1:modify,{written}") == NicModify("-1", wish)
        assert list(read_net_add(f"0:{written}").wish.ips) == list(range(len(ips)))


SCRAPS = (
    r"0: -1: add: remove :add, :modify, :remove ip= ip0= ip1= ip9999999= ip network= mac= name= mode= - no_ , : = \ "
    "pool none auto 192.0.2.4 2001:db8::1 aa:00:00:11:22:33 \x00 \ud800"
)
WHOLE = ["0:ip0=192.0.2.4,ip1=pool,network=net1", "-1:add,ip=pool,mac=auto", "eth0:modify,ip1=none", "0:remove"]

scraps = st.sampled_from(SCRAPS.split(" ")) | st.text(st.characters(exclude_categories=[]), max_size=3)
shaped = st.lists(scraps, max_size=10).map("".join)
mutated = st.builds(
    lambda text, at, cut, scrap: text[:at] + scrap + text[at + cut :],
    st.sampled_from(WHOLE),
    st.integers(0, 35),
    st.integers(0, 5),
    scraps,
)


@given(st.text(st.characters(exclude_categories=[]), max_size=60) | shaped | mutated)
@example("0:" + "ip" + "9" * 4000 + "=pool")
@example("9" * 4096)
def test_any_text_is_read_the_same_each_time_or_refused_and_nothing_else(text: str) -> None:
    for read in READERS:
        outcome = outcome_of(read, text)

        assert outcome_of(read, text) == outcome
        assert outcome.startswith(("Nic", "--net: "))
        assert outcome.isprintable()


def outcome_of(read: Callable[[str], object], text: str) -> str:
    try:
        return repr(read(text))
    except Invalid as error:
        return error.message
