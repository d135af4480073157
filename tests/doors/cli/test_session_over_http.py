"""The command line over a server: every command says what it says on the store itself, and does the same."""

import json
import re
import shlex
import shutil
import signal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import Result

import tenure
from tests.doors.cli.framework.test_exit_codes import REFUSED
from tests.doors.cli.processes import eventually, started
from tests.doors.cli.site import Site, build_full
from tests.infrastructure.street import street

MADE_UP = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?(\.\d+)?Z?( UTC)?"
    r"|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|([0-9a-f]{2}:){5}[0-9a-f]{2}"
    r"|[0-9a-f]{32}|\b[0-9a-f]{16}\b|sqlite:///\S+|http://\S+"
)
"""What is new each time: times, uuids, plans, addresses of network cards; and where the ledger is."""


ASKER = re.compile(r'("(?:ended_)?(?:actor|request_id)": )(?:null|"[^"]*")|  (?:actor|request_id)=\S+')
CALLER = re.compile(r"token/\w+, request \w+")
"""On whose word: a server knows its caller by the token, a store knows nobody."""
WIDTH = re.compile(r"(?<=\S) {2,}")
"""How far a column goes, which hangs on what is in it."""


@dataclass(frozen=True, slots=True)
class Served(Site):
    """A site whose ledger is asked through a server."""

    server: str

    def call(self, *words: str, env: Mapping[str, str] | None = None, fed: str | bytes | None = None) -> Result:
        """Run the command line in this process, with the server in its environment."""
        around = {"TENURE_SERVER": self.server, "TENURE_STORE": f"sqlite:///{self.folder / 'nothing.db'}"}
        return Site.call(self, *words, env={**around, **(env or {})}, fed=fed)


@dataclass(frozen=True, slots=True)
class Twins:
    """The same site twice: one on its store, one behind a server."""

    here: Site
    there: Served

    def same(self, *words: str, code: int | None = None) -> str:
        """Run a command on both; it must end the same way and say the same. Return what it says."""
        ours, theirs = self.here.call(*words), self.there.call(*words)
        assert _told(theirs) == _told(ours), words
        assert code in (None, ours.exit_code), ours.output
        return ours.stdout


def _told(result: Result) -> tuple[int, str, str]:
    unnamed = [ASKER.sub(r"\1", CALLER.sub("-", text)) for text in (result.stdout, result.stderr)]
    out, err = (WIDTH.sub("  ", MADE_UP.sub("…", text)) for text in unnamed)
    return result.exit_code, out, err


@pytest.fixture
def twins(built_deployments: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Twins]:
    """Give the site twice, and stand in a folder with its files."""
    here, there = tmp_path / "here", tmp_path / "there"
    shutil.copytree(built_deployments, here)
    shutil.copytree(built_deployments, there)
    build_full(Site(here))
    build_full(Site(there))
    monkeypatch.chdir(here)
    with street().quiet_house(Site(there).url) as server:
        yield Twins(Site(here), Served(there, server))


SCRIPTS = {
    "deployments": """
        deployment upload-config cloud.yml --dry-run --json
        deployment configs --json
        deployment delete-config default
        deployment list --json
        deployment plan shop.yml --recreate
        deployment apply shop.yml --recreate --json
        deployment show shop
        deployment commit shop web/0 --vm vm-8
        deployment fail shop web/1
        deployment why shop web/0
        deployment why shop web/1
        deployment abort shop
        deployment stop shop db/0 --hard
        deployment start shop db/0 --json
        deployment ignore shop db/0
        deployment delete shop
        deployment unignore shop db/0
        deployment diff shop.yml
        deployment plan cloud.yml
        deployment plan cloud.yml --json
        deployment cleanup-orphans
        deployment delete shop
        deployment lose shop web/0
        deployment lose shop nowhere/0
        verify --json
    """,
    "work on deployments": """
        deployment upload-config compiling.yml
        deployment apply tested.yml --changes
        deployment apply tested.yml --changes --json
        deployment recreate shop --dry-run
        deployment recreate shop web/0
        deployment commit shop web/0 --vm vm-8 --plan nothing
        deployment commit shop web/0 --vm vm-8 --json
        deployment compile shop
        deployment compile shop --workers 1 --json
        deployment compile shop --plan nothing
        deployment commit-worker shop 0 --vm vm-20
        deployment commit-worker shop 9 --vm vm-20
        deployment end-compile shop --json
        deployment end-compile shop
        deployment run-errand shop smoke-test --dry-run
        deployment run-errand shop smoke-test
        deployment fail shop smoke-test/0
        deployment run-errand shop smoke-test --json
        deployment commit shop smoke-test/0 --vm vm-9
        deployment run-errand shop web
        deployment end-errand shop web
        deployment end-errand shop smoke-test --json
        deployment cck shop --vms vms.txt
        deployment cck shop --vms vms.txt --recreate --json
        deployment cck shop --vms vms.txt --forget
        deployment cck nowhere --vms vms.txt
        deployment networks
        deployment networks --json
        deployment list
    """,
    "holdings": """
        allocate net1 instance/a
        allocate net1 instance/a -q
        allocate net1 instance/b --label team=shop --description front --carrier vm1 --plan p --slot nic0 --json
        allocate net1 instance/lb --count 4 --contiguous --json
        allocate net1 instance/k --key k1 --json
        allocate net1 instance/k --key k1 --json
        allocate net1 instance/r --address 192.0.2.30 --reserved allow
        hold net1 instance/p --lasts 3600 --json
        confirm net1 192.0.2.13 instance/web-9
        transfer net1 192.0.2.10 instance/web-0 instance/web-1 --json
        holding modify net1 192.0.2.12 instance/db-0 --label a=b --json
        holding list net1
        release net1 192.0.2.30 instance/r
        release net1 192.0.2.30 instance/r
        release-owner instance/lb --json
        allocate full instance/late --wait 0.2
        waiting list
        sweep --json
        archive --keep-days 30
        archive --keep-days 0 --json
        archive --keep-days -1
        history 192.0.2.30
        verify --json
    """,
    "plan": """
        network add lan2 --space wide --tag prod --json
        network list
        subnet add lan2 10.9.0.0/24 --gateway 10.9.0.1 --name block --json
        subnet list lan2 --json
        pool add lan2 10.9.0.10-10.9.0.20 --name web --policy random --json
        pool modify lan2 web --cooling 30
        pool list lan2
        reserve add lan2 10.9.0.15 --reason router --json
        reserve list lan2
        reserve remove lan2 10.9.0.15
        preallocation add lan2 instance/x 10.9.0.18
        preallocation list lan2 --json
        pool retire lan2 web
        subnet retire lan2 block
        network retire lan2
        pool remove lan2 web
        subnet remove lan2 block
        network remove lan2
        network remove net1 --cascade
        network list --json
    """,
    "reading": """
        show
        show --json
        show net1
        show net1 --json
        show 192.0.2.10
        show instance/web-0 --json
        search team=shop
        search --label team=shop --json
        search 192.0.2.0/24 --kind holding
        why 192.0.2.10
        why 192.0.2.20 --json
        why 192.0.2.77
        history 192.0.2.10 --json
        history 192.0.2.99
        watch --once --json
        watch --once --after 3
        show --map net1
        render hosts net1
        export --format json -o out.json
        export --format csv -o -
    """,
    "instances": """
        instance list
        instance list --json
        instance info web --json
        instance add db --net 0:ip=pool,network=lan --node node1 --json
        instance modify db --net add:ip=pool,network=lan
        instance list -o name,nic.ips
        instance info db
        instance remove db
        instance remove nobody
        group list
        node list
        network info lan
        network list-tags lan
    """,
    "moving": """
        import plan.csv --dry-run
        import plan.csv
        import plan.csv
        import netbox.csv --dry-run --json
        audit plan.csv
        audit plan.csv --json
        holding list net1
    """,
}


def steps(name: str) -> list[list[str]]:
    """Read a script's commands."""
    return [shlex.split(line) for line in SCRIPTS[name].strip().splitlines()]


@pytest.mark.parametrize("name", SCRIPTS)
def test_commands_say_and_do_over_a_server_what_they_do_on_the_store(twins: Twins, name: str) -> None:
    for words in steps(name):
        twins.same(*words)

    assert MADE_UP.sub("…", repr(twins.here.state()[2:4])) == MADE_UP.sub("…", repr(twins.there.state()[2:4]))


@pytest.mark.sampled
@pytest.mark.parametrize(("code", "error", "words"), REFUSED, ids=lambda value: str(value)[:60])
def test_what_is_refused_keeps_its_code_and_its_document(twins: Twins, code: int, error: str, words: list[str]) -> None:
    before = twins.there.state()

    twins.same(*words, code=code)
    twins.same(*words, "--json", code=code)

    assert twins.there.error(*words)[1]["code"] == error
    assert twins.there.state() == before


@pytest.mark.parametrize(
    "words",
    [["backup", "copy.db"], ["restore", "friday.db"], ["bench", "--seconds", "0.05"]],
    ids=lambda words: words[0],
)
def test_what_needs_the_store_itself_says_so(twins: Twins, words: list[str]) -> None:
    code, error = twins.there.error(*words)

    assert (code, error["code"], error["field"]) == (2, "invalid", "server")
    assert "name it with --store" in error["message"]
    assert not Path("copy.db").exists()


def test_a_store_on_the_command_line_comes_before_a_server_in_the_environment(twins: Twins) -> None:
    there, url = twins.there, twins.here.url
    there.text("network", "add", "new", "--store", url)

    assert "new" in twins.here.text("network", "list")
    assert "new" not in there.text("network", "list")


def test_a_store_and_a_server_at_once_are_refused(twins: Twins) -> None:
    code, error = twins.here.error("show", "--store", twins.here.url, "--server", twins.there.server)

    assert (code, error["message"]) == (2, "--store and --server: name one of them")


@pytest.mark.parametrize("url", ["sqlite:///tenure.db", "http://", "http://user:secret@host", "http://h?nonsense=1"])
def test_a_server_that_is_none_is_two_and_no_secret_is_told(twins: Twins, url: str) -> None:
    code, error = twins.here.error("show", "--server", url)

    assert (code, error["code"]) == (2, "invalid")
    assert "secret" not in json.dumps(error)


def test_a_server_that_is_not_there_is_six_and_changes_nothing(twins: Twins) -> None:
    code, error = twins.here.error("allocate", "net1", "instance/a", "--server", "http://127.0.0.1:1?within_s=0.2")

    assert (code, error["code"], error["outcome"]) == (6, "store_unavailable", "none")
    assert "--server" in error["hint"]


def test_a_token_comes_from_a_file_or_from_the_environment_and_is_told_to_nobody(site: Site) -> None:
    reads = site.json("token", "add", "reader", "--scope", "read")["token"]
    writes = site.json("token", "add", "writer", "--scope", "allocate:net1")["token"]
    (site.folder / "token").write_text(f"{writes}\n", "utf-8")
    with street().quiet_house(site.url, guarded=True) as server:
        there = Served(site.folder, server)
        asked = ["allocate", "net1", "instance/a", "--json"]

        assert there.error("show")[0] == 7
        assert there.call("show", env={"TENURE_TOKEN": reads}).exit_code == 0
        assert there.call(*asked, env={"TENURE_TOKEN": reads}).exit_code == 7
        assert there.call(*asked, env={"TENURE_TOKEN": "tnr_wrong"}).exit_code == 7
        assert "wrong" not in there.call(*asked, env={"TENURE_TOKEN": "tnr_wrong"}).stderr
        done = there.call(*asked, "--token-file", "token", env={"TENURE_TOKEN": reads})
        assert (done.exit_code, json.loads(done.stdout)["owner"]) == (0, "instance/a")
    with tenure.open(site.url) as ledger:
        assert list(ledger.changes())[-1].actor == "token/writer"


def test_a_token_file_that_is_not_there_is_named(twins: Twins) -> None:
    code, error = twins.there.error("show", "--token-file", "nowhere")

    assert (code, error["code"], error["message"]) == (2, "file", "nowhere: No such file or directory")


def test_who_follows_the_log_sees_what_others_do_and_stops_when_told(twins: Twins) -> None:
    seen = str(twins.there.state()[0])
    watching = started(twins.there.url, "watch", "--json", "--after", seen, "--server", twins.there.server)
    assert watching.stdout is not None
    twins.there.text("allocate", "net1", "instance/a")
    told = json.loads(watching.stdout.readline())
    watching.terminate()
    _, err = watching.communicate(timeout=30)

    assert (told["verb"], told["owner"]) == ("grant", "instance/a")
    assert (watching.returncode, err) == (143, "")


def test_who_is_interrupted_while_he_waits_leaves_nothing_behind(twins: Twins) -> None:
    waiting = started(
        twins.there.url, "allocate", "full", "instance/late", "--wait", "60", "--server", twins.there.server
    )
    assert eventually(lambda: twins.there.json("waiting", "list") != [])
    waiting.send_signal(signal.SIGINT)
    waiting.communicate(timeout=30)

    assert waiting.returncode == 130
    assert eventually(lambda: twins.there.json("waiting", "list") == [])
    assert [each["owner"] for each in twins.there.json("holding", "list", "full")] == ["instance/a", "instance/b"]
