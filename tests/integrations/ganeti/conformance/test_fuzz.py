"""Anything may stand behind an option: the command is done or refused, and a refused one changes nothing."""

import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenure.doors.cli.main import main
from tests.integrations.ganeti.conformance.door import REFUSALS, Door

PIECES = st.sampled_from(
    [
        *(
            "add:",
            ":remove",
            ":modify,",
            "remove:",
            "cidr=",
            "gateway=",
            "dhcp",
            "dhcp=",
            "name=",
            "pool",
            "subnet=",
            ",",
        ),
        *(
            "ip=",
            "ip0=",
            "ip1=",
            "network=",
            "mac=",
            "link=",
            "mode=",
            "0:",
            "1:",
            "-1:",
            "=",
            ":",
            "-",
            "/",
            "\\",
            "[",
            "]",
        ),
        *("192.0.2.0/24", "10.0.0.0/24", "192.0.2.10-192.0.2.20", "10.0.0.9", "2001:db8::/64", "2001:db8::5", "::/0"),
        *(
            "subnet1",
            "six",
            "pool1",
            "pool3",
            "net1",
            "none",
            "auto",
            "true",
            "no_",
            "0.0.0.0/0",
            "255.255.255.255",
            "ip9=",
        ),
    ]
)
SHAPED = st.lists(PIECES, min_size=1, max_size=8).map("".join)
TEXTS = SHAPED | st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
NETWORK_OPTIONS = st.sampled_from(
    ["--subnet", "--pool", "--add-reserved-ips", "--remove-reserved-ips", "--gateway", "--network6", "--gateway6", "-m"]
)


@pytest.fixture
def kept(built: Path, tmp_path: Path) -> Door:
    """Give one cluster for all examples of a test: what was done stays done, which makes for odder states."""
    shutil.copy(built, tmp_path / "tenure.db")
    door = Door(f"sqlite:///{tmp_path / 'tenure.db'}")
    door.add("inst1", "ip0=pool,ip1=pool3")
    return door


def _try(door: Door, words: list[str]) -> None:
    before = door.state()
    result = CliRunner().invoke(main, words, env={"TENURE_STORE": door.url, "TENURE_HOOKS": None})
    assert result.exit_code in (0, *REFUSALS), (words, result.output)
    assert "Traceback" not in result.output
    if result.exit_code:
        assert result.stderr.startswith("tenure: "), (words, result.stderr)
        assert door.state() == before, words


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(said=st.lists(st.tuples(NETWORK_OPTIONS, TEXTS), min_size=1, max_size=3))
def test_a_network_takes_any_options_or_refuses_them(kept: Door, said: list[tuple[str, str]]) -> None:
    _try(
        kept, ["network", "modify", *(f"{name}={text}" if name != "-m" else f"-m{text}" for name, text in said), "net1"]
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(nets=st.lists(TEXTS, min_size=1, max_size=2), verb=st.sampled_from(["add", "modify"]))
def test_an_instance_takes_any_nics_or_refuses_them(kept: Door, nets: list[str], verb: str) -> None:
    _try(kept, ["instance", verb, *(f"--net={text}" for text in nets), "inst1" if verb == "modify" else "fresh"])
