"""The map of a pool: golden pictures from a /28 to a /64, and what holds of every map."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.doors.cli.output.map_cells import MOST_CELLS, TAKEN, CellKind, Stroke, joined, painted, panel, panels
from tenure.doors.cli.output.map_text import ASCII, UNICODE, Signs
from tenure.kernel.addressing.addresses import V6_BASE
from tenure.kernel.addressing.ranges import AddressRange, parse_range
from tests.doors.cli.output.pictures import drawn, strokes

GOLDEN = Path(__file__).parent / "golden"
FREE, HELD, RESERVED = CellKind.FREE, CellKind.HELD, CellKind.RESERVED

PICTURES: dict[str, tuple[str, list[list[Stroke]], int]] = {
    "28": (
        "192.0.2.0/28",
        [
            strokes(FREE, "192.0.2.2-192.0.2.14"),
            strokes(RESERVED, "192.0.2.0-192.0.2.1", "192.0.2.15", "192.0.2.6"),
            strokes(HELD, "192.0.2.2-192.0.2.4")
            + strokes(CellKind.PENDING, "192.0.2.7")
            + strokes(CellKind.DRAINING, "192.0.2.8")
            + strokes(CellKind.COOLING, "192.0.2.9"),
        ],
        1,
    ),
    "24": (
        "192.0.2.0/24",
        [
            strokes(FREE, "192.0.2.10-192.0.2.100"),
            strokes(RESERVED, "192.0.2.0-192.0.2.1", "192.0.2.20-192.0.2.50", "192.0.2.255"),
            strokes(HELD, "192.0.2.10-192.0.2.14", "192.0.2.25", "192.0.2.99"),
        ],
        1,
    ),
    "22": (
        "10.1.0.0/22",
        [
            strokes(FREE, "10.1.0.0/22"),
            strokes(RESERVED, "10.1.0.0", "10.1.1.0/25", "10.1.3.255"),
            strokes(HELD, "10.1.0.1-10.1.0.90", "10.1.2.7") + strokes(CellKind.COOLING, "10.1.2.8-10.1.2.12"),
        ],
        1,
    ),
    "16": (
        "10.0.0.0/16",
        [
            strokes(FREE, "10.0.0.0-10.0.127.255"),
            strokes(RESERVED, "10.0.0.0", "10.0.16.0/21"),
            strokes(HELD, "10.0.0.1-10.0.7.44", "10.0.9.0", "10.0.9.64-10.0.9.79", "10.0.9.128-10.0.9.170"),
        ],
        1,
    ),
    "64": (
        "2001:db8::/64",
        [
            strokes(FREE, "2001:db8::/64"),
            strokes(RESERVED, "2001:db8::-2001:db8::1"),
            strokes(HELD, "2001:db8::10-2001:db8::42") + strokes(CellKind.PENDING, "2001:db8::50"),
        ],
        1,
    ),
    "64-spread": (
        "2001:db8::/64",
        [
            strokes(FREE, "2001:db8::/64"),
            strokes(RESERVED, "2001:db8:0:0:8000::/66"),
            strokes(HELD, *(f"2001:db8::{quarter:x}000:0:0:7" for quarter in range(1, 16, 2))),
        ],
        1,
    ),
    "48-of-prefixes": (
        "2001:db8::/48",
        [strokes(FREE, "2001:db8::/48"), strokes(RESERVED, "2001:db8::/64"), strokes(HELD, "2001:db8:0:1::/64")],
        1 << 64,
    ),
}


@pytest.mark.parametrize("signs", [UNICODE, ASCII], ids=["unicode", "ascii"])
@pytest.mark.parametrize("name", PICTURES)
def test_a_map_looks_as_it_should(name: str, signs: Signs) -> None:
    whole, layers, unit = PICTURES[name]
    expected = (GOLDEN / f"map-{name}-{'unicode' if signs is UNICODE else 'ascii'}.txt").read_text("utf-8")

    assert drawn(signs, whole, *layers, unit=unit) + "\n" == expected


@pytest.mark.parametrize("name", PICTURES)
def test_a_map_fits_a_terminal(name: str) -> None:
    whole, layers, unit = PICTURES[name]
    lines = drawn(UNICODE, whole, *layers, unit=unit).splitlines()

    assert max(map(len, lines)) <= 80
    assert len(lines) <= 60


@pytest.mark.parametrize("name", PICTURES)
def test_an_ascii_map_is_ascii(name: str) -> None:
    whole, layers, unit = PICTURES[name]

    assert drawn(ASCII, whole, *layers, unit=unit).isascii()


BASE = parse_range("10.0.0.0").first
PLACES = st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 40), st.sampled_from(list(CellKind))), max_size=30)


def disjoint(pieces: list[tuple[int, int, CellKind]]) -> list[Stroke]:
    """Make a layer of what was drawn: sorted, without overlaps."""
    layer: list[Stroke] = []
    for first, length, kind in sorted(pieces, key=lambda piece: piece[0]):
        if not layer or BASE + first > layer[-1].last:
            layer.append(Stroke(BASE + first, BASE + first + length, kind))
    return layer


@given(PLACES, PLACES, st.integers(0, 700), st.integers(0, 4000))
def test_painting_agrees_with_painting_address_by_address(
    lower: list[tuple[int, int, CellKind]], upper: list[tuple[int, int, CellKind]], start: int, length: int
) -> None:
    whole = AddressRange(BASE + start, BASE + start + length)
    layers = [disjoint(lower), disjoint(upper)]
    slowly = dict.fromkeys(range(whole.first, whole.last + 1), CellKind.OUTSIDE)
    for layer in layers:
        for stroke in layer:
            slowly.update((place, stroke.kind) for place in range(stroke.first, stroke.last + 1) if place in slowly)

    found = painted(whole, layers)

    assert {p: stroke.kind for stroke in found for p in range(stroke.first, stroke.last + 1)} == slowly
    assert joined(found) == found
    [picture, *_] = panels(found)
    assert picture.counts == Counter(slowly.values())
    assert sum((cell for cell in picture.cells), Counter()) == picture.counts
    assert len(picture.cells) <= MOST_CELLS + 32


def test_a_map_of_a_prefix_costs_by_its_holdings_not_by_its_size() -> None:
    first = V6_BASE + (0x20010DB8 << 96)
    whole = AddressRange(first, first + (1 << 64) - 1)
    held = [Stroke(first + number * (1 << 40), first + number * (1 << 40), HELD) for number in range(20_000)]

    found = panel(painted(whole, [[Stroke(whole.first, whole.last, FREE)], held]), whole)

    assert found.counts == {HELD: 20_000, FREE: (1 << 64) - 20_000}


def test_one_holding_in_a_prefix_is_seen() -> None:
    whole = "2001:db8::/64"
    overview, _, closer = drawn(ASCII, whole, strokes(FREE, whole), strokes(HELD, "2001:db8::8000:0:0:1")).partition(
        "\n\n"
    )

    assert [line.split() for line in overview.splitlines() if ".......:" in line or ":......." in line] == [
        ["2001:db8:0:0:8000::", ":.......", "........", "........", "........"]
    ]
    assert "2001:db8:0:0:8000::  .#......" in closer


def test_a_held_address_among_reserved_ones_does_not_look_like_a_full_block() -> None:
    whole = "10.0.0.0/16"
    picture = drawn(ASCII, whole, strokes(FREE, whole), strokes(RESERVED, "10.0.0.0/24"), strokes(HELD, "10.0.0.7"))

    assert picture.splitlines()[1].split()[1] == ":xxx...."


@pytest.mark.parametrize("kind", TAKEN)
def test_everything_taken_counts_as_taken_in_a_shade(kind: CellKind) -> None:
    whole = "10.0.0.0/16"

    assert drawn(ASCII, whole, strokes(FREE, whole), strokes(kind, "10.0.0.0/26")).splitlines()[1].split()[1][0] == "#"
