"""The judge of Neutron's suites: the list of exceptions cannot hide anything, nor outlive its reasons."""

from dataclasses import replace

import pytest

from tests.integrations.neutron.suites.catalogue import Suite, Tie
from tests.integrations.neutron.suites.judging import Report, judge, piece

SUITE = Suite(
    "small", ("module",), least=3, tied={"A.tied": Tie("names it", "no attribute")}, skipped={"A.skipped": "upstream"}
)
FORESEEN = Report(
    known=["A.good", "A.skipped", "A.tied"],
    ran=["A.good", "A.skipped", "A.tied"],
    failed={"A.tied": "it has no attribute"},
    skipped={"A.skipped": "no reason"},
    pools={"TenurePool": 3},
)
ONE = replace(FORESEEN, ran=["A.good"], failed={}, skipped={})


def test_what_is_foreseen_is_no_failure() -> None:
    outcome = judge(SUITE, FORESEEN)

    assert outcome.failures == ()
    assert (outcome.tests, outcome.tied, outcome.skipped) == (3, 1, 1)


@pytest.mark.parametrize(
    ("report", "told"),
    [
        (replace(FORESEEN, failed={**FORESEEN.failed, "A.good": "boom"}), "A.good failed: boom"),
        (replace(FORESEEN, failed={"A.tied": "it is down"}), "A.tied failed: it is down"),
        (replace(FORESEEN, skipped={**FORESEEN.skipped, "A.good": "tired"}), "A.good was skipped and is not listed"),
        (replace(FORESEEN, failed={}), "A.tied is listed as tied to the stock driver and did not fail"),
        (replace(FORESEEN, skipped={}), "A.skipped is listed as skipped by Neutron and was not"),
        (replace(ONE, known=["A.good", "A.skipped", "A.new"]), "A.tied is listed and no longer there"),
        (replace(FORESEEN, known=["A.skipped", "A.tied"]), "only 2 tests were found, and there should be 3"),
        (replace(FORESEEN, pools={"TenurePool": 3, "NeutronDbPool": 1}), "the drivers made were"),
        (replace(FORESEEN, pools={}), "the drivers made were {}"),
    ],
)  # fmt: skip
def test_whatever_is_not_foreseen_is_told(report: Report, told: str) -> None:
    [failure] = judge(SUITE, report).failures

    assert failure.startswith(told)


def test_pieces_make_up_the_whole_and_share_nothing() -> None:
    names = [f"A.test_{number:03}" for number in range(418)]
    pieces = [piece(names, number, 4) for number in range(4)]

    assert sorted(name for part in pieces for name in part) == names
    assert {len(part) for part in pieces} == {104, 105}
