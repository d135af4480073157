"""Hints: what to do next fits the command that failed, for people and with --json."""

import json
import shlex
from pathlib import Path

import pytest

from tenure.doors.cli.framework.hints import CASCADING, PENDING
from tests.doors.cli.site import Site, build_full, ganeti_nic
from tests.doors.cli.test_reference import COMMANDS


def hint(site: Site, line: str) -> str:
    """Run a command that fails; return the hint, which people and scripts see alike."""
    words = shlex.split(line)
    _, error = site.error(*words)
    told = site.call(*words).stderr.splitlines()
    assert told[-1] == f"  {error['hint']}"
    return str(error["hint"])


IN_USE = (
    "change or remove NICs with `tenure instance modify NAME --net …` first, and let go of what others hold with "
    "`tenure release`"
)


@pytest.mark.parametrize(
    "line",
    [
        "network modify lan --subnet 198.51.100.0/24:remove",
        "network modify net1 --subnet old:modify,cidr=203.0.113.0/30",
        "subnet modify net1 old --cidr 203.0.113.0/30",
    ],
)
def test_what_is_in_use_is_not_ended_by_an_option_that_the_command_lacks(machines: Site, line: str) -> None:
    _, error = machines.error(*shlex.split(line))

    assert error["code"] == "still_in_use", error
    assert hint(machines, line) == IN_USE
    assert "cascade" not in error["message"]


@pytest.mark.parametrize("reason", ["retired printers", "cooling units", "for whoever waits"])
def test_the_reason_of_a_reserved_range_is_not_taken_for_a_state_of_the_address(site: Site, reason: str) -> None:
    site.call("reserve", "add", "net1", "192.0.2.60", "--reason", reason)
    _, error = site.error("allocate", "net1", "instance/x", "--address", "192.0.2.60")

    assert (error["code"], error["kept_as"]) == ("address_reserved", "reserved")
    assert "--reserved" in hint(site, "allocate net1 instance/x --address 192.0.2.60")


def test_what_is_pending_is_waited_for(site: Site) -> None:
    assert hint(site, "network modify net1 --pool pool1:remove") == PENDING


@pytest.mark.parametrize("line", ["network remove net1", "subnet remove net1 old"])
def test_what_can_be_ended_at_once_is_told_so(site: Site, line: str) -> None:
    _, error = site.error(*shlex.split(line))

    assert "--cascade" in error["hint"]
    assert error["message"].endswith("or pass --cascade")


def test_the_commands_that_can_end_holdings_are_those_with_the_option() -> None:
    found = [path for path, command in COMMANDS.items() if any(each.name == "cascade" for each in command.params)]

    assert sorted(" ".join(path) for path in found) == sorted(CASCADING)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("network modify lan --subnet add:colour=red", "network modify"),
        ("network add x --pool add", "network add"),
        ("network connect lan -N mode=foo", "network connect"),
        ("instance add x --net 0:colour=red", "instance add"),
        ("instance modify web --net x:modify", "instance modify"),
        ("node add n --primary-ip x", "node add"),
        ("subnet add lan 10.0.0.1/24", "subnet add"),
        ("pool add lan 10.0.0.9-10.0.0.1", "pool add"),
        ("why nonsense", "why"),
        ("allocate net1 nobody", "allocate"),
        ("release net1 192.0.2.10/99 instance/x", "release"),
        ("--json network --json modify lan --subnet add:colour=red", "network modify"),
    ],
)
def test_wrong_words_lead_to_the_help_of_the_command_itself(machines: Site, line: str, command: str) -> None:
    code, error = machines.error(*shlex.split(line))

    assert (code, error["code"]) == (2, "invalid")
    assert error["hint"] == f"`tenure {command} --help` shows what may be written"
    assert machines.call(*command.split(), "--help").exit_code == 0


def test_a_mac_that_somebody_has_can_be_left_out(machines: Site) -> None:
    mac = machines.json("instance", "info", "web")["macs"][0]
    line = f"instance add x --net 0:network=lan,mac={mac}"

    assert hint(machines, line) == "leave mac= out to have one made up"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("instance add web", "`tenure instance list`"),
        ("node add node1 --group default", "`tenure node list`"),
        ("group add default", "`tenure group list`"),
        ("instance modify web --net 0:name=a --net add:name=a", "name="),
    ],
)
def test_a_name_that_is_taken_is_looked_up_among_its_kind(machines: Site, line: str, said: str) -> None:
    assert said in hint(machines, line)


def test_what_todays_form_cannot_say_the_other_can(machines: Site) -> None:
    assert hint(machines, "network export-ganeti out.data --form today") == "`--form revised` can say it"


def test_a_runtime_file_that_cannot_be_converted_is_named(machines: Site) -> None:
    two = json.dumps([[], [ganeti_nic(["10.7.0.4", "10.7.0.5"])], {}, []])
    (machines.folder / "two.runtime").write_text(two, "utf-8")
    line = "network convert-runtime two.runtime --form today"

    assert machines.error(*shlex.split(line))[1]["message"].startswith("two.runtime: nics[0].ip: 2 IPs")
    assert hint(machines, line) == "`--form revised` can say it"


@pytest.mark.parametrize(
    "line", ["instance add x --net 0:ip=pool,network=lan", "instance add x --net 0:ip=web,network=lan"]
)
def test_what_is_only_retired_is_to_be_taken_back_into_use(machines: Site, line: str) -> None:
    machines.text("network", "retire", "lan")
    retired = hint(machines, line)
    machines.text("network", "retire", "lan", "--undo")
    machines.text("pool", "retire", "lan", "web")

    assert "`tenure network retire lan --undo`" in retired
    assert "`tenure pool retire`" in hint(machines, line)
    machines.text("pool", "retire", "lan", "web", "--undo")
    assert machines.call(*shlex.split(line)).exit_code == 0


def test_what_is_wholly_reserved_is_not_waited_for(machines: Site) -> None:
    machines.text("reserve", "add", "lan", machines.json("subnet", "list", "lan")[0]["cidr"])

    for line in (
        "allocate lan instance/x",
        "allocate lan instance/x --count 2",
        "instance add x --net 0:ip=pool,network=lan",
    ):
        error = machines.error(*shlex.split(line))[1]
        assert "all of it is reserved" in error["message"]
        assert "wait" not in error["message"] + error["hint"]
        assert error["hint"].startswith("`tenure reserve list lan`")


def test_limits_at_odds_are_said_in_one_voice(machines: Site) -> None:
    error = machines.error("allocate", "lan", "instance/x", "--pool", "web", "--family", "ipv6")[1]

    assert error["message"] == "pool 'web' of network 'lan' is IPv4, not IPv6; leave out the pool or the family"
    assert error["name"] == "web"


def test_what_is_really_full_needs_more_addresses(site: Site) -> None:
    build_full(site)

    assert hint(site, "allocate full instance/x").startswith("`tenure pool add`")


SILENT_CLUSTER = """
clusters: [{name: c, cluster: {server: "http://127.0.0.1:9"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
users: [{name: u, user: {token: x}}]
current-context: c
"""


def test_a_cluster_that_does_not_answer_is_not_looked_for_at_the_store(site: Site) -> None:
    Path("cluster.yaml").write_text(SILENT_CLUSTER, "utf-8")
    line = "ipam why 10.0.0.1 --kubeconfig cluster.yaml"

    assert "--kubeconfig" in hint(site, line)
    assert "127.0.0.1:9" in (message := site.error(*shlex.split(line))[1]["message"])
    assert "ConnectionKey" not in message


def test_what_files_lack_is_not_looked_for_in_the_ledger(site: Site) -> None:
    Path("none.yaml").write_text("", "utf-8")

    assert "render metal3" in hint(site, "render metal3 none.yaml --machine m")
