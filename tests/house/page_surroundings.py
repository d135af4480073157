"""What pages take for granted, and the test must bring: a ledger, files, a server, a database, a Neutron."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.doors.cli.neutron_site import build_neutron
from tests.house.page_player import Command
from tests.infrastructure.free_port import free_port
from tests.infrastructure.postgres import schema_in_thread


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What a reader of a page has done before, and what the site has in place of the names that the page uses."""

    before: tuple[str, ...] = ()
    within: Mapping[str, str] = field(default_factory=dict)
    """Commands that come before a command of the page: where its sections are alternatives."""
    after: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    """What is written on the page, and what is typed in its place."""
    environment: Mapping[str, str] = field(default_factory=dict)
    findings: tuple[str, ...] = ()
    """Commands that find something on this site, and say so by their exit code."""

    def around(self, commands: list[Command]) -> list[Command]:
        """Return the commands of a page as they are typed here."""
        typed = [Command(text) for text in self.before]
        for command in commands:
            typed += [Command(self.within[command.text])] if command.text in self.within else []
            typed.append(Command(self._here(command.text), command.prints))
        return typed + [Command(text) for text in self.after]

    def _here(self, text: str) -> str:
        for name, ours in self.names.items():
            text = text.replace(name, ours)
        return text


Maker = Callable[[ExitStack, Path], Surroundings]


def _access(stack: ExitStack, folder: Path) -> Surroundings:
    port = free_port()
    return Surroundings(
        before=(
            f"tenure serve --port {port} --first-token-file admin.token --log json > serve.log 2>&1 &",
            "ADMIN=$(cat admin.token)",
        ),
        names={
            "https://ipam.example.org": f"http://127.0.0.1:{port}",
            "postgresql://ledger@db/tenure": _postgres(stack),
        },
        after=("kill %1",),
    )


def _backup(stack: ExitStack, folder: Path) -> Surroundings:
    return Surroundings(
        before=("tenure network add office",), names={"postgresql://ledger@db/tenure": _postgres(stack)}
    )


def _moving_in(stack: ExitStack, folder: Path) -> Surroundings:
    tables = {"prefixes": "prefixes.csv", "ranges": "ranges.csv", "addresses": "addresses.csv"}
    return Surroundings(
        before=(
            "tenure network add office --subnet add:cidr=192.0.2.0/24,gateway=192.0.2.1,pool",
            "tenure allocate office instance/web-0 --address 192.0.2.10 --label hostname=web-0",
            "tenure export --format csv --output hosts.csv",
            "tenure export --format json --output all.json",
            *(f"tenure export --format netbox-{table} --output {file}" for table, file in tables.items()),
            "cp addresses.csv netbox-addresses.csv",
            "sed -i s/192.0.2.10/192.0.2.11/ addresses.csv",  # in NetBox another owner would have it
        ),
        findings=("tenure audit hosts.csv netbox-addresses.csv",),
    )


def _neutron(stack: ExitStack, folder: Path) -> Surroundings:
    store = _postgres(stack)
    build_neutron(folder)
    (folder / ".neutron").mkdir()
    database = f"[database]\nconnection = sqlite:///{folder}/neutron.sqlite\n"
    ledger = f"[tenure]\nmode = ledger\nledger = {store[1:-1]}\n"
    (folder / ".neutron" / "neutron.conf").write_text(database + ledger, "utf-8")
    return Surroundings(
        names={
            "/etc/neutron/neutron.conf": ".neutron/neutron.conf",
            "postgresql://tenure:secret@db.example/tenure": store,
            "--store URL": f"--store {store}",
            "SUBNET_ID": "s",
            "10.0.0.7": "192.0.2.7",
        },
        # Moving back is one way to go on, to keep an eye on it the other.
        within={"tenure neutron verify": "tenure neutron reconcile"},
    )


def _serve(stack: ExitStack, folder: Path) -> Surroundings:
    return Surroundings(environment={"TENURE_SERVE_PORT": "0"})


def _hooks(stack: ExitStack, folder: Path) -> Surroundings:
    return Surroundings(
        after=(
            "mkdir -p hooks/instance-add-post.d && cp script hooks/instance-add-post.d/10-shown",
            "tenure group add default && tenure node add node1",
            "tenure network add lan --subnet add:cidr=192.0.2.0/28,pool && tenure network connect lan default",
            "tenure instance add web --net 0:ip0=pool,ip1=pool,network=lan --hooks hooks --json > answer",
            "grep 'web has 192.0.2.1 and 192.0.2.2' answer",
        )
    )


MAKERS: dict[str, Maker] = {
    "docs/howto/access.md": _access,
    "docs/howto/backup.md": _backup,
    "docs/howto/moving-in.md": _moving_in,
    "docs/howto/neutron.md": _neutron,
    "docs/howto/serve.md": _serve,
    "docs/reference/hooks.md": _hooks,
}
"""Pages that take something for granted; all others begin with an empty folder."""


@contextmanager
def surroundings_of(page: str, folder: Path) -> Iterator[Surroundings]:
    """Give what a page takes for granted."""
    with ExitStack() as stack:
        yield MAKERS[page](stack, folder) if page in MAKERS else Surroundings()


def _postgres(stack: ExitStack) -> str:
    """Return the URL of an empty ledger on PostgreSQL, as it is typed into a shell."""
    return f"'{stack.enter_context(schema_in_thread(emptied=True))}'"
