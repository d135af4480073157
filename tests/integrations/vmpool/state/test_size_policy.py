"""When a pool grows and shrinks: watermarks with room between them (VS9)."""

import pytest

from tenure.integrations.vmpool.pool_errors import BadArgument
from tenure.integrations.vmpool.state.go_json import NotReadable
from tenure.integrations.vmpool.state.size_policy import SizePolicy, Watermark, read_policy, read_watermark

NUMBERS = SizePolicy(low=Watermark(2), high=Watermark(6), most=12)
SHARES = SizePolicy(low=Watermark(20, True), high=Watermark(50, True), least=4, most=200)


@pytest.mark.parametrize(
    ("size", "free", "growth", "shrinkage"),
    [(10, 0, 2, 0), (8, 0, 4, 0), (8, 1, 3, 0), (8, 2, 0, 0), (8, 6, 0, 0), (8, 7, 0, 3), (12, 0, 0, 0), (14, 1, 0, 2)],
)
def test_vs9_below_the_low_mark_it_grows_and_above_the_high_one_it_shrinks_to_the_middle(
    size: int, free: int, growth: int, shrinkage: int
) -> None:
    assert (NUMBERS.growth(size, free), NUMBERS.shrinkage(size, free)) == (growth, shrinkage)


@pytest.mark.parametrize("policy", [NUMBERS, SHARES], ids=["numbers", "shares"])
def test_vs9_a_pool_that_was_changed_is_not_changed_back(policy: SizePolicy) -> None:
    for size in range(policy.least, policy.most + 1):
        for free in range(size + 1):
            grown = policy.growth(size, free)
            assert size + grown <= policy.most
            assert not (grown and policy.shrinkage(size + grown, free + grown)), (size, free)
            shrunk = policy.shrinkage(size, free)
            assert size - shrunk >= policy.least
            assert not (shrunk and policy.growth(size - shrunk, free - shrunk)), (size, free)


def test_vs9_a_pool_that_is_smaller_than_it_may_be_grows_whatever_is_free() -> None:
    assert SHARES.growth(1, 1) == 3
    assert SHARES.growth(4, 4) == 0


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ({"low": Watermark(6), "high": Watermark(6)}, "low"),
        ({"low": Watermark(2), "high": Watermark(50, True)}, "low"),
        ({"least": 0}, "min"),
        ({"least": 9, "most": 8}, "max"),
        ({"step": 0}, "step"),
        ({"prefix": "192.0.2.1/24"}, "prefix"),
        ({"prefix": "nowhere"}, "prefix"),
        ({"shrink_after_s": float("nan")}, "shrink_after"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused_by_name(words: dict[str, object], field: str) -> None:
    with pytest.raises(BadArgument, match=rf"^{field}: ") as error:
        SizePolicy(**{"low": Watermark(2), "high": Watermark(6), **words})  # type: ignore[arg-type]

    assert error.value.field == field


@pytest.mark.parametrize("text", ["", "-1", "101%", "2.5", "two", "1e3", None, True, "٣"])
def test_what_is_no_watermark_is_refused(text: object) -> None:
    with pytest.raises(BadArgument, match=r"^high: "):
        read_watermark(text, "high")


def test_a_policy_is_read_as_it_was_written() -> None:
    for policy in (NUMBERS, SHARES, SizePolicy(low=Watermark(0), high=Watermark(1), prefix="2001:db8::/64")):
        assert read_policy(policy.as_json()) == policy
    assert read_policy(None) is None
    with pytest.raises(NotReadable, match="policy"):
        read_policy({"low": "5", "high": "4", "min": 1, "max": 2, "step": 1})
