"""The options about networks: every form, every refusal, and what is written reads back."""

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tenure.integrations.ganeti.options.lexer import name_fault
from tenure.integrations.ganeti.options.network_grammar import (
    MAX_RANGES,
    PoolAdd,
    PoolModify,
    PoolOption,
    PoolRemove,
    SubnetAdd,
    SubnetModify,
    SubnetOption,
    SubnetRemove,
    check_door_name,
    read_address,
    read_cidr,
    read_connection_option,
    read_pool_option,
    read_ranges,
    read_subnet_option,
)
from tenure.kernel.addressing.addresses import format_address
from tenure.kernel.addressing.ranges import AddressRange, Cidr, parse_cidr, parse_range
from tenure.kernel.errors import Invalid
from tenure.kernel.plan.edits import KEEP
from tests.kernel.strategies import cidrs, names, positions, ranges

UUID = "0a1b2c3d-0000-4000-8000-00000000abcd"

door_names = names.filter(lambda name: name_fault(name) is None and "\\" not in name and not name.startswith("["))
addresses = positions.map(format_address)
READERS: list[Callable[[str], object]] = [
    read_subnet_option,
    read_pool_option,
    read_ranges,
    read_connection_option,
    read_cidr,
    read_address,
    lambda text: check_door_name(text, "name"),
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("add:cidr=10.0.0.0/24,gateway=10.0.0.1,dhcp=true", SubnetAdd(parse_cidr("10.0.0.0/24"), "10.0.0.1", True)),
        ("add:cidr=10.0.0.0/27,pool", SubnetAdd(parse_cidr("10.0.0.0/27"), pool=True)),
        ("add:cidr=10.0.0.0/27,no_pool,no_dhcp", SubnetAdd(parse_cidr("10.0.0.0/27"))),
        ("add:name=x,dhcp,cidr=10.0.0.0/27", SubnetAdd(parse_cidr("10.0.0.0/27"), dhcp=True, name="x")),
        ("add:cidr=2001:DB8:0::/64,gateway=2001:DB8::0:1", SubnetAdd(parse_cidr("2001:db8::/64"), "2001:db8::1")),
        ("some-ident:remove", SubnetRemove("some-ident")),
        ("10.0.0.0/24:remove", SubnetRemove("10.0.0.0/24")),
        ("10.0.0.7/24:remove", SubnetRemove("10.0.0.0/24")),
        (f"{UUID.upper()}:remove", SubnetRemove(UUID)),
        ("my subnet:remove", SubnetRemove("my subnet")),
        ("some-ident:modify,dhcp=false,name=foo", SubnetModify("some-ident", dhcp=False, name="foo")),
        ("some-ident:modify,cidr=192.0.2.32/28", SubnetModify("some-ident", cidr=parse_cidr("192.0.2.32/28"))),
        ("some-ident:modify,gateway=192.0.2.40", SubnetModify("some-ident", gateway="192.0.2.40")),
        ("x:modify,gateway=None,name=NONE", SubnetModify("x", gateway=None, name=None)),
        ("x:modify,-gateway,-name,dhcp", SubnetModify("x", gateway=None, name=None, dhcp=True)),
        ("[2001:DB8::/64]:modify,no_dhcp", SubnetModify("2001:db8::/64", dhcp=False)),
        ("2001:db8::/64:modify,gateway=2001:db8::5", SubnetModify("2001:db8::/64", gateway="2001:db8::5")),
    ],
)
def test_each_form_of_a_subnet_option_is_read(text: str, expected: SubnetOption) -> None:
    assert read_subnet_option(text) == expected


def test_s02_colons_in_values_are_no_verbs() -> None:
    option = read_subnet_option("add:cidr=2001::/64,gateway=2001::1,dhcp=true")

    assert option == SubnetAdd(parse_cidr("2001::/64"), gateway="2001::1", dhcp=True)


def test_s03_a_subnet_without_cidr_is_refused() -> None:
    with pytest.raises(Invalid, match=r"--subnet: 'add:gateway=10\.9\.0\.1': cidr is missing") as caught:
        read_subnet_option("add:gateway=10.9.0.1")

    assert caught.value.field == "subnet"


@pytest.mark.parametrize("text", ["2001:db8::/64:remove", "[2001:db8::/64]:remove", "2001:0db8::5/64:remove"])
def test_s12_an_ipv6_block_is_an_ident(text: str) -> None:
    assert read_subnet_option(text) == SubnetRemove("2001:db8::/64")


def test_u14_host_bits_are_taken_off_with_a_warning() -> None:
    added = read_subnet_option("add:cidr=192.0.2.0/22")
    changed = read_subnet_option("some-ident:modify,cidr=192.0.2.0/22")

    warning = "--subnet: 192.0.2.0/22 has host bits, taken as 192.0.0.0/22"
    assert added == SubnetAdd(parse_cidr("192.0.0.0/22"), warning=warning)
    assert changed == SubnetModify("some-ident", cidr=parse_cidr("192.0.0.0/22"), warning=warning)
    assert read_cidr("::1/8") == (parse_cidr("::/8"), "--network: ::1/8 has host bits, taken as ::/8")
    assert read_cidr("10.0.0.0/24") == (parse_cidr("10.0.0.0/24"), None)


@pytest.mark.parametrize(
    ("text", "piece", "reason"),
    [
        ("add:cidr=10.9.0.0/24,gateway=10.9.0.300", "gateway=10.9.0.300", "not an IP address"),
        ("add:cidr=10.9.0.0/24,gateway=none", "gateway=none", "not an IP address"),
        ("add:cidr=10.9.0.0/24,gateway=10.9.0.1/24", "gateway=10.9.0.1/24", "not a block"),
        ("add:cidr=10.9.0.0/24,gateway=fe80::1%e", "gateway=fe80::1%e", "zone"),
        ("add:cidr=10.9.0.0/24,gateway=", "gateway=", "needs a value, as in gateway=192.0.2.1"),
        ("add:cidr=10.9.0.0/24,gateway", "gateway", "needs a value"),
        ("add:cidr=10.9.0.0/24,-gateway", "-gateway", "needs a value"),
        ("add:cidr=10.9.0.0/24,gatway=10.9.0.1", "gatway=10.9.0.1", "known are cidr, gateway, dhcp, name, pool"),
        ("add:cidr=10.9.0.0/24,dhcp=maybe", "dhcp=maybe", "neither true nor false"),
        ("add:cidr=10.9.0.0/24,dhcp=", "dhcp=", "neither true nor false"),
        ("add:cidr=10.9.0.0/24,pool=web", "pool=web", "pool takes no value"),
        ("add:cidr=10.9.0.0/24,name=none", "name=none", "word of the options"),
        ("add:cidr=10.9.0.0/24,cidr=10.8.0.0/24", "cidr=10.8.0.0/24", "given twice"),
        ("add:cidr=10.9.0.0", "cidr=10.9.0.0", "no prefix length"),
        ("add:cidr=10.9.0.0/33", "cidr=10.9.0.0/33", "not a block"),
        ("add:cidr=fe80::%e/64", "cidr=fe80::%e/64", "not a block"),
        ("add:cidr", "cidr", "needs a value"),
        ("add:", "add:", "cidr is missing"),
        ("add", "add", "no verb"),
        ("remove", "remove", "say which subnet"),
        ("remove:subnet1", "remove:subnet1", "IDENT:remove"),
        ("modify:subnet1", "modify:subnet1", "no verb"),
        ("subnet1", "subnet1", "no verb"),
        ("subnet1:modify", "subnet1:modify", "nothing to modify"),
        ("subnet1:modify,pool", "pool", "--pool add:subnet=IDENT"),
        ("subnet1:modify,cidr=none", "cidr=none", "no prefix length"),
        ("10.0.0.0:remove", "10.0.0.0:remove", "'10.0.0.0' names nothing"),
        ("10.0.0.0/40:remove", "10.0.0.0/40:remove", "not a block"),
        ("2001:db8::zz/64:remove", "2001:db8::zz/64:remove", "names nothing: a name holds no ':'"),
        ("x:modify,name=a:remove", "x:modify,name=a:remove", "names nothing: a name holds no"),
        ("add:cidr=10.9.0.0/24,\x07", "add:cidr=10.9.0.0/24,\\x07", "control character"),
    ],
)
def test_a_wrong_subnet_option_is_refused_by_option_piece_and_reason(text: str, piece: str, reason: str) -> None:
    with pytest.raises(Invalid) as caught:
        read_subnet_option(text)

    assert caught.value.message.startswith(f"--subnet: '{piece}': ")
    assert reason in caught.value.message
    assert caught.value.field == "subnet"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("add:192.0.2.10-192.0.2.100,name=pool1", PoolAdd(parse_range("192.0.2.10-192.0.2.100"), name="pool1")),
        ("add:10.0.0.7-10.0.0.20", PoolAdd(parse_range("10.0.0.7-10.0.0.20"))),
        ("add:10.0.0.100", PoolAdd(parse_range("10.0.0.100"))),
        ("add:10.0.0.0/27", PoolAdd(parse_range("10.0.0.0/27"))),
        ("add:name=p,10.0.0.100", PoolAdd(parse_range("10.0.0.100"), name="p")),
        ("add:subnet=some-ident", PoolAdd(subnet="some-ident")),
        (f"add:subnet={UUID},name=w", PoolAdd(subnet=UUID, name="w")),
        ("add:subnet=2001:db8::/64", PoolAdd(subnet="2001:db8::/64")),
        ("add:subnet=[2001:db8::/64],name=w", PoolAdd(subnet="2001:db8::/64", name="w")),
        ("add:2001:db8::10-2001:db8::ff,name=p6", PoolAdd(parse_range("2001:db8::10-2001:db8::ff"), name="p6")),
        ("pool1:modify,name=web", PoolModify("pool1", "web")),
        ("pool1:modify,name=none", PoolModify("pool1", None)),
        ("pool1:modify,-name", PoolModify("pool1", None)),
        ("10.0.0.8/29:modify,name=web", PoolModify("10.0.0.8-10.0.0.15", "web")),
        ("2001:DB8::10-2001:DB8::ff:modify,name=web", PoolModify("2001:db8::10-2001:db8::ff", "web")),
    ],
)
def test_each_form_of_a_pool_option_is_read(text: str, expected: PoolOption) -> None:
    assert read_pool_option(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("remove:192.0.2.20-192.0.2.50", PoolRemove(range=parse_range("192.0.2.20-192.0.2.50"))),
        ("remove:2001:db8::10", PoolRemove(range=parse_range("2001:db8::10"))),
        ("pool3:remove", PoolRemove(name="pool3")),
        ("10.0.0.40-10.0.0.45:remove", PoolRemove(range=parse_range("10.0.0.40-10.0.0.45"), whole=True)),
        ("2001:db8::1-2001:db8::f:remove", PoolRemove(range=parse_range("2001:db8::1-2001:db8::f"), whole=True)),
        ("[2001:db8::1-2001:db8::f]:remove", PoolRemove(range=parse_range("2001:db8::1-2001:db8::f"), whole=True)),
    ],
)
def test_u11_u20_a_range_after_the_verb_cuts_and_a_pool_before_it_goes_whole(text: str, expected: PoolOption) -> None:
    assert read_pool_option(text) == expected


@pytest.mark.parametrize("name", ["pool", "none", "192.0.2.5", "Pool", "NONE", "auto", "remove", UUID, "10.0.0.0/8"])
def test_p23_u12_a_pool_is_not_called_by_a_word_of_the_options_or_an_address(name: str) -> None:
    with pytest.raises(Invalid) as caught:
        read_pool_option(f"add:192.0.2.110-192.0.2.120,name={name}")

    assert caught.value.message.startswith(f"--pool: 'name={name}': ")
    with pytest.raises(Invalid, match=f"^name: '{name}': "):
        check_door_name(name, "name")


@pytest.mark.parametrize(
    ("text", "piece", "reason"),
    [
        ("add:192.0.2.9-192.0.2.1", "192.0.2.9-192.0.2.1", "192.0.2.9 lies above 192.0.2.1"),
        ("add:192.0.2.9-2001:db8::1", "192.0.2.9-2001:db8::1", "different families"),
        ("add:garbage", "garbage", "not an IP address"),
        ("remove:192.0.2.9-192.0.2.1", "remove:192.0.2.9-192.0.2.1", "lies above"),
        ("192.0.2.9-192.0.2.1:remove", "192.0.2.9-192.0.2.1:remove", "lies above"),
        ("add:10.0.0.1-10.0.0.5,10.0.0.9", "10.0.0.9", "one range to an option; repeat --pool"),
        ("add:10.0.0.1,subnet=x", "add:10.0.0.1,subnet=x", "not both"),
        ("add:name=web", "add:name=web", "one range is needed, or subnet=IDENT"),
        ("add:", "add:", "one range is needed"),
        ("add:start=10.0.0.1,size=5", "start=10.0.0.1", "a range is written first-last"),
        ("add:10.0.0.1+5", "10.0.0.1+5", "first-last"),
        ("add:10.0.0.7/27", "10.0.0.7/27", "lies in is 10.0.0.0/27"),
        ("add:subnet=", "subnet=", "needs a value"),
        ("add:10.0.0.1,no_x", "no_x", "unknown key"),
        ("remove:10.0.0.1,10.0.0.2", "remove:10.0.0.1,10.0.0.2", "one range to an option"),
        ("remove:pool1", "remove:pool1", "pool1:remove"),
        ("remove:", "remove:", "say what to remove"),
        ("remove", "remove", "say what to remove"),
        ("pool1:modify", "pool1:modify", "nothing to modify"),
        ("pool1:modify,range=10.0.0.1", "range=10.0.0.1", "known are name"),
        ("pool1:modify,name=a:b", "name=a:b", "not a name"),
        ("pool1", "pool1", "no verb"),
        ("10.0.0.1-10.0.0.300:remove", "10.0.0.1-10.0.0.300:remove", "not an IP address"),
    ],
)
def test_p11_u18_u31_a_wrong_pool_option_is_refused_by_option_piece_and_reason(
    text: str, piece: str, reason: str
) -> None:
    with pytest.raises(Invalid) as caught:
        read_pool_option(text)

    assert caught.value.message.startswith(f"--pool: '{piece}': ")
    assert reason in caught.value.message
    assert caught.value.field == "pool"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("192.0.2.20-192.0.2.50", ["192.0.2.20-192.0.2.50"]),
        ("=192.0.2.5", ["192.0.2.5"]),
        ("192.0.2.5,192.0.2.60-192.0.2.62,10.0.0.0/30", ["192.0.2.5", "192.0.2.60-192.0.2.62", "10.0.0.0/30"]),
        (" 192.0.2.5 ,\n\t2001:db8::/80 ", ["192.0.2.5", "2001:db8::/80"]),
    ],
)
def test_reserved_ranges_are_read_in_order(text: str, expected: list[str]) -> None:
    assert read_ranges(text) == [parse_range(piece) for piece in expected]


@pytest.mark.parametrize(
    ("text", "piece", "reason"),
    [
        ("", "", "nothing is written"),
        ("=", "=", "no range at all"),
        ("192.0.2.5,,192.0.2.6", "192.0.2.5,,192.0.2.6", "an empty piece"),
        ("192.0.2.5,192.0.2.256", "192.0.2.256", "not an IP address"),
        ("192.0.2.5/24", "192.0.2.5/24", "host bits"),
        ("192.0.2.1 - 192.0.2.5", "192.0.2.1 - 192.0.2.5", "white space"),
        ("pool1", "pool1", "not an IP address"),
    ],
)
def test_a_wrong_piece_of_a_reserved_list_is_refused(text: str, piece: str, reason: str) -> None:
    with pytest.raises(Invalid) as caught:
        read_ranges(text, "--remove-reserved-ips")

    assert caught.value.message.startswith(f"--remove-reserved-ips: '{piece}': ")
    assert reason in caught.value.message
    assert caught.value.field == "remove_reserved_ips"


def test_a_list_longer_than_an_argument_can_be_is_refused() -> None:
    long = ",".join(["192.0.2.5"] * 1000)

    assert len(read_ranges(long)) == 1000
    with pytest.raises(Invalid, match=f"at most {MAX_RANGES} characters"):
        read_ranges(",".join([long] * 20))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mode=bridged,link=br0,vlan=.10", {"mode": "bridged", "link": "br0", "vlan": ".10"}),
        ("mode=openvswitch,link=switch1,vlan=:10:20", {"mode": "openvswitch", "link": "switch1", "vlan": ":10:20"}),
        ("mode=routed,vlan=none", {"mode": "routed", "vlan": ""}),
    ],
)
def test_a_connection_says_only_what_is_written(text: str, expected: dict[str, str]) -> None:
    assert read_connection_option(text) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("mode=wireless", "there are bridged, routed, openvswitch"),
        ("mode", "needs a value"),
        ("link=", "needs a value"),
        ("link=a b", "one word"),
        (f"link={'x' * 256}", "at most 255"),
        ("bridge=br0", "unknown key 'bridge'"),
        ("", "nothing is written"),
    ],
)
def test_a_wrong_connection_is_refused(text: str, reason: str) -> None:
    with pytest.raises(Invalid, match=reason) as caught:
        read_connection_option(text)

    assert caught.value.message.startswith("-N: ")
    assert caught.value.field == "nic_parameters"


@pytest.mark.parametrize("word", ["true", "YES", "On", "1", "false", "NO", "Off", "0"])
def test_yes_and_no_are_read_in_any_of_the_usual_words(word: str) -> None:
    read = read_subnet_option(f"x:modify,dhcp={word}")

    assert isinstance(read, SubnetModify)
    assert read.dhcp is (word in ("true", "YES", "On", "1"))


@given(cidrs(), st.none() | addresses, st.booleans(), st.none() | door_names, st.booleans(), st.randoms())
def test_a_written_subnet_reads_back(
    cidr: Cidr, gateway: str | None, dhcp: bool, name: str | None, pool: bool, order: Random
) -> None:
    said = [f"cidr={cidr}", f"dhcp={'Yes' if dhcp else 'off'}", "pool" if pool else "no_pool"]
    said += [f"gateway={gateway}"] if gateway else []
    said += [f"name={name}"] if name else []
    order.shuffle(said)

    assert read_subnet_option(f"add:{','.join(said)}") == SubnetAdd(cidr, gateway, dhcp, name, pool)


@given(
    cidrs().map(str) | door_names | st.uuids().map(str),
    st.just(KEEP) | cidrs(),
    st.just(KEEP) | st.none() | addresses,
    st.just(KEEP) | st.none() | door_names,
)
def test_a_written_change_of_a_subnet_reads_back(ident: str, cidr: object, gateway: object, name: object) -> None:
    values = {"cidr": cidr, "gateway": gateway, "name": name}
    said = [f"{key}={'none' if value is None else value}" for key, value in values.items() if value is not KEEP]

    read = read_subnet_option(f"{ident}:modify,no_dhcp{''.join(f',{piece}' for piece in said)}")

    assert isinstance(read, SubnetModify)
    assert (read.ident, read.cidr, read.gateway, read.dhcp, read.name) == (ident, cidr, gateway, False, name)
    assert read_subnet_option(f"{ident}:remove") == SubnetRemove(ident)


@given(ranges(), door_names, door_names | cidrs().map(str))
def test_a_written_pool_reads_back(range: AddressRange, name: str, subnet: str) -> None:
    assert read_pool_option(f"add:{range},name={name}") == PoolAdd(range, name=name)
    assert read_pool_option(f"add:subnet={subnet}") == PoolAdd(subnet=subnet)
    assert read_pool_option(f"remove:{range}") == PoolRemove(range=range)
    assert read_pool_option(f"{range}:remove") == PoolRemove(range=range, whole=True)
    assert read_pool_option(f"{name}:remove") == PoolRemove(name=name)
    assert read_pool_option(f"{range}:modify,name={name}") == PoolModify(str(range), name)


@given(st.lists(ranges() | cidrs(), min_size=1, max_size=6), st.sampled_from([",", " , ", ",\n"]))
def test_a_written_list_of_ranges_reads_back(pieces: list[AddressRange | Cidr], comma: str) -> None:
    expected = [AddressRange(piece.first, piece.last) for piece in pieces]

    assert read_ranges(comma.join(str(piece) for piece in pieces)) == expected


SCRAPS = (
    r"add: remove: :remove :modify, cidr= gateway= dhcp pool name= subnet= mode= link= no_ - , : [ ] = + / \ "
    "10.0.0.0 /24 2001:db8:: none web bridged \x00 \ud800"
)
WHOLE = ["add:cidr=10.0.0.0/24,gateway=10.0.0.1,pool", "2001:db8::/64:modify,name=x", "add:10.0.0.7-10.0.0.20,name=p"]

scraps = st.sampled_from(SCRAPS.split(" ")) | st.text(st.characters(exclude_categories=[]), max_size=3)
shaped = st.lists(scraps, max_size=10).map("".join)
mutated = st.builds(
    lambda text, at, cut, scrap: text[:at] + scrap + text[at + cut :],
    st.sampled_from(WHOLE),
    st.integers(0, 40),
    st.integers(0, 5),
    scraps,
)


@given(st.text(st.characters(exclude_categories=[]), max_size=60) | shaped | mutated)
@example("[")
@example("add:\\")
@example("::/0" * 2000)
def test_any_text_is_read_the_same_each_time_or_refused_and_nothing_else(text: str) -> None:
    for read in READERS:
        outcome = outcome_of(read, text)

        assert outcome_of(read, text) == outcome
        assert outcome.isprintable()


def outcome_of(read: Callable[[str], object], text: str) -> str:
    try:
        return repr(read(text))
    except Invalid as error:
        return f"{error.field}: {error.message}"
