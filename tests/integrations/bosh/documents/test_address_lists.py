"""One address, a block, or first - last; one of them or a list; what is none of these is told with its place."""

import pytest

from tenure.integrations.bosh.documents.address_lists import parse_address_or_block, parse_span, read_spans
from tenure.integrations.bosh.documents.yaml_tree import DocumentFaults, read_tree
from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind
from tenure.kernel.addressing.addresses import parse_address
from tenure.kernel.errors import Invalid


def spans(text: str) -> tuple[list[str], DocumentFaults]:
    faults = DocumentFaults()
    found = read_spans(read_tree(f"static: {text}", "doc").value["static"], faults)
    return [str(span) for span, _ in found], faults


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("172.20.5.9", "172.20.5.9", "172.20.5.9"),
        (" 172.20.5.9 ", "172.20.5.9", "172.20.5.9"),
        ("172.20.5.9/32", "172.20.5.9", "172.20.5.9"),
        ("172.20.5.8/29", "172.20.5.8", "172.20.5.15"),
        ("172.20.5.9-172.20.5.11", "172.20.5.9", "172.20.5.11"),
        ("172.20.5.9  -  172.20.5.11", "172.20.5.9", "172.20.5.11"),
        ("172.20.5.9 -172.20.5.9", "172.20.5.9", "172.20.5.9"),
        ("128.0.0.0/1", "128.0.0.0", "255.255.255.255"),
        ("2001:db8::5", "2001:db8::5", "2001:db8::5"),
        ("2001:db8::/124", "2001:db8::", "2001:db8::f"),
        ("2001:db8::1 - 2001:db8:1::", "2001:db8::1", "2001:db8:1::"),
        ("::/0", "::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ("172.20.5.9/29", "172.20.5.8", "172.20.5.15"),
        ("172.20.5.1/30", "172.20.5.0", "172.20.5.3"),
        ("172.20.5.9/255.255.255.248", "172.20.5.8", "172.20.5.15"),
        ("2001:db8::5/124", "2001:db8::", "2001:db8::f"),
    ],
)
def test_a_span_reaches_from_its_first_to_its_last_address(text: str, first: str, last: str) -> None:
    span = parse_span(text)

    assert (span.first, span.last) == (parse_address(first), parse_address(last))


@pytest.mark.parametrize(
    "text",
    [
        "172.20.5.9-172.20.5.5",
        "2001:db8::2 - 2001:db8::1",
        "172.20.5.9 - 2001:db8::1",
        "172.20.5.8/30 - 172.20.5.15",
        "172.20.5.8 - 172.20.5.12/30",
        "172.20.5.8/32 - 172.20.5.12",
        "172.20.5.1-172.20.5.2-172.20.5.3",
        "172.20.5.1 - ",
        "-172.20.5.1",
    ],
)
def test_c22_a_range_that_is_none_is_refused(text: str) -> None:
    """Backwards, of two families, with a block as an end, with three ends or with one."""
    with pytest.raises(Invalid) as caught:
        parse_span(text)

    assert caught.value.message == f"Invalid IP range format: {text}"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", ""),
        ("172.20.5", "172.20.5"),
        ("172.20.5.256", "172.20.5.256"),
        ("172.20.5.0/33", "172.20.5.0/33"),
        ("2001:db8::1%eth0", "2001:db8::1%eth0"),
        ("2001:db8::1%eth0/64", "2001:db8::1%eth0/64"),
        ("web.example", "web.example"),
        ("172.20.5.1 - here", "here"),
        ("((static_ips))", "((static_ips))"),
    ],
)
def test_what_is_no_address_is_refused(text: str, wrong: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse_span(text)

    assert caught.value.message == f"Invalid IP or CIDR format: {wrong}"


def test_where_a_block_is_read_strictly_an_address_inside_it_is_refused_and_told_how_the_block_is_written() -> None:
    with pytest.raises(Invalid) as caught:
        parse_address_or_block("172.20.5.9/29", strict=True)

    told = "Invalid IP or CIDR format: 172.20.5.9/29 (the block around it is 172.20.5.8/29)"
    assert caught.value.message == told


def test_one_span_may_stand_for_a_list() -> None:
    found, faults = spans("172.20.5.9 - 172.20.5.11")

    assert found == ["172.20.5.9-172.20.5.11"]
    assert faults.found == []


def test_a_list_keeps_its_order() -> None:
    found, _ = spans("[172.20.5.9, 172.20.5.4/31, '172.20.5.2 - 172.20.5.3', 172.20.5.9]")

    assert found == ["172.20.5.9", "172.20.5.4-172.20.5.5", "172.20.5.2-172.20.5.3", "172.20.5.9"]


def test_every_wrong_member_is_told_and_the_right_ones_are_kept() -> None:
    found, faults = spans("[172.20.5.9-172.20.5.5, 172.20.5.4, x, 7, {a: b}]")

    assert found == ["172.20.5.4"]
    assert [(fault.kind, str(fault.place)) for fault in faults.found] == [
        (BoshErrorKind.NETWORK_INVALID_IP_RANGE_FORMAT, "doc:1:10 (static[0])"),
        (BoshErrorKind.NETWORK_INVALID_IP_RANGE_FORMAT, "doc:1:45 (static[2])"),
        (BoshErrorKind.GENERIC, "doc:1:48 (static[3])"),
        (BoshErrorKind.GENERIC, "doc:1:51 (static[4])"),
    ]
    assert faults.found[2].message == "Property 'static[3]' must be text: an address, a block, or first - last"


def test_a_mapping_is_no_span() -> None:
    found, faults = spans("{first: 172.20.5.2}")

    assert found == []
    assert [fault.kind for fault in faults.found] == [BoshErrorKind.GENERIC]
