"""Log lines: what is remembered of them is bounded, and no secret gets into one."""

import pytest

from tenure.doors.http.observe.log_format import LONGEST_REMEMBERED, REMEMBERED, TextCache, as_text

ID, SECRET = "0123456789abcdef", "fedcba9876543210" * 4
EVERY_LETTER = "".join(f"%{ord(letter):02X}" for letter in f"tnr_{ID}_{SECRET}")


@pytest.mark.parametrize(
    "text",
    [
        f"/api/v1/tokens/tnr_{ID}_{SECRET}:revoke",
        f"/api/v1/tokens/tnr%5F{ID}%5f{SECRET}:revoke",
        f"/api/v1/tokens/tnr_{ID}%5F{SECRET}:revoke",
        f"/api/v1/tokens/tn%72_{ID}_{SECRET}:revoke",
        f"/api/v1/tokens/tnr%255F{ID}%255F{SECRET}:revoke",
        f"/api/v1/tokens/tnr_{ID}_{SECRET}{EVERY_LETTER}",
        f"/api/v1/tokens/{EVERY_LETTER}:revoke",
    ],
    ids=["plain", "encoded", "half encoded", "another letter", "encoded twice", "two", "every letter"],
)
def test_a_token_in_a_path_is_told_without_its_secret(text: str) -> None:
    told = as_text(text.encode())

    assert ID in told
    assert SECRET[:8] not in told
    assert EVERY_LETTER[-24:] not in told


def test_a_path_without_a_token_is_told_as_it_came() -> None:
    assert as_text(b"/api/v1/owners/instance%2Fweb-0%20tnr") == "/api/v1/owners/instance%2Fweb-0%20tnr"


def test_what_is_remembered_is_bounded_in_number_and_in_length() -> None:
    remembered = TextCache(as_text)
    for number in range(2 * REMEMBERED):
        assert remembered[b"/%d" % number] == f"/{number}"
        assert remembered[b"/%d" % number + b"x" * LONGEST_REMEMBERED].startswith(f"/{number}x")

    assert 0 < len(remembered) <= REMEMBERED
    assert max(map(len, remembered)) <= LONGEST_REMEMBERED
