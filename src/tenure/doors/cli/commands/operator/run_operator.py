"""``tenure operator``: controllers in a Kubernetes cluster."""

import asyncio
import contextlib
import ctypes
import dataclasses
import gc
import json
import logging
import re
import signal
import sys
import time
from asyncio.sslproto import SSLProtocol
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

import click

from tenure.doors.cli.framework.click_base import command
from tenure.doors.cli.framework.shared_options import FiniteRange
from tenure.doors.cli.output.print_answer import answer, echo, json_line
from tenure.doors.cli.session import Session, pass_session
from tenure.kernel.errors import Invalid
from tenure.kernel.extras import how_to_install

if TYPE_CHECKING:
    from tenure.integrations.kubernetes.operator import Running
    from tenure.integrations.kubernetes.operator_settings import OperatorSettings

    RunUntil = Callable[[OperatorSettings, asyncio.Event, Callable[[Running], None]], Awaitable[None]]

COLLECTED_AFTER = (10_000, 50, 100)
"""Objects made, collections of new objects and of older ones, after which the next kind is collected."""

TLS_BUFFER = 32 * 1024
"""What is read from a TLS connection at once: two records, the largest of which has 16 KB."""

M_MMAP_THRESHOLD, LARGE_PIECE = -3, 128 * 1024
"""The option of glibc's ``mallopt``, and the limit that glibc begins with."""

LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")

# The extra `kubernetes` installs these; any other module that is not found is an error of ours.
MODULES = ("aiohttp", "orjson", "kubernetes_asyncio", "cryptography", "yaml")


def read_host(context: click.Context, parameter: click.Parameter, text: str | None) -> str | None:
    """Read where to listen; an empty text, which would be taken for every address there is, is refused."""
    if text is not None and not text.strip():
        raise click.BadParameter("it is empty; 0.0.0.0 is every address of this machine", context, parameter)
    return text


@command("operator")
@click.option(
    "--kubeconfig", metavar="FILE", help="How to reach the cluster [default: the pod's own account, else $KUBECONFIG]."
)
@click.option("--context", metavar="NAME", help="Another context of the kubeconfig than its current one.")
@click.option("--namespaces", metavar="A,B", help="Work in these namespaces only [default: all].")
@click.option(
    "--controllers",
    metavar="A,B",
    default="metal3,capi",
    show_default=True,
    help="Serve IPClaims (metal3), Cluster API's IPAddressClaims on IPPools (capi) and on the in-cluster provider's "
    "pools (in-cluster); render the data of machines (render).",
)
@click.option("--own-namespace", metavar="NAME", help="Where lease and certificate are kept [default: the pod's].")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    callback=read_host,
    help="Where /livez, /readyz and /metrics are served.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=8081, show_default=True, help="0 takes a free one.")
@click.option(
    "--metrics-auth",
    is_flag=True,
    help="Answer /metrics only to callers whose token may get that URL, as the API server says.",
)
@click.option(
    "--webhooks/--no-webhooks", default=True, help="Judge objects of our kinds before the API server stores them."
)
@click.option(
    "--webhook-host",
    metavar="HOST",
    callback=read_host,
    help="Where the API server asks the webhooks [default: --host].",
)
@click.option("--webhook-port", type=click.IntRange(0, 65535), default=9443, show_default=True, help="0: a free one.")
@click.option(
    "--webhook-certificates",
    metavar="FOLDER",
    default="",
    help="Show the certificate that others keep in this folder (tls.crt, tls.key) [default: the operator makes one].",
)
@click.option(
    "--default-strategy",
    type=click.Choice(["sequential", "random"]),
    default="sequential",
    show_default=True,
    help="The strategy of pools that name none.",
)
@click.option(
    "--allow-outside-preallocations",
    is_flag=True,
    help="Let pre-allocations lie outside the ranges, in pools that say nothing of it.",
)
@click.option(
    "--watch-filter",
    metavar="VALUE",
    default="",
    help="Look after objects with this value of the label cluster.x-k8s.io/watch-filter only.",
)
@click.option(
    "--orphan-grace",
    "orphan_grace_s",
    metavar="SECONDS",
    type=FiniteRange(min=0),
    default=600.0,
    show_default=True,
    help="After how long an address that this operator made is released if its claim is not there.",
)
@click.option(
    "--enable-bmh-name-based-preallocation",
    "claims_by_host",
    is_flag=True,
    help="Name the claims of machines by their hosts, so that preAllocations reach them (with the controller render).",
)
@click.option(
    "--render-like-capm3",
    is_flag=True,
    help="Render nothing for dnsServersFromIPPool, as CAPM3 does (with the controller render).",
)
@click.option(
    "--log", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How log lines look."
)
@click.option("--check", is_flag=True, help="Only check the settings and read the credentials, and print them.")
@pass_session
def operator(
    session: Session,
    kubeconfig: str | None,
    context: str | None,
    namespaces: str | None,
    controllers: str,
    own_namespace: str | None,
    host: str,
    port: int,
    metrics_auth: bool,
    webhooks: bool,
    webhook_host: str | None,
    webhook_port: int,
    webhook_certificates: str,
    default_strategy: str,
    allow_outside_preallocations: bool,
    watch_filter: str,
    log: str,
    check: bool,
    **more: Any,
) -> None:
    """Run controllers in a Kubernetes cluster, until SIGTERM or Ctrl-C.

    Several replicas may run: one leads and writes, the others are ready to follow. IPPools serve claims of Metal3 and
    of Cluster API; `render` makes the data of Metal3's machines. Apply what `tenure manifests` prints before.

    For example:
      tenure operator --kubeconfig admin.conf --port 8081 --check
    """
    try:
        from tenure.integrations.kubernetes import operator as shell
        from tenure.integrations.kubernetes.operator_context import CannotListen
        from tenure.integrations.kubernetes.operator_settings import OperatorSettings
        from tenure.integrations.kubernetes.runtime.credentials import CredentialsMissing, find_credentials
        from tenure.integrations.kubernetes.runtime.credentials import own_namespace as pods
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in MODULES:
            raise
        raise Invalid(f"operator: {error.name} is missing: {how_to_install('kubernetes')}") from None
    chosen = _known(names_in(controllers), shell.CONTROLLERS)
    (own,) = namespaces_in("--own-namespace", (own_namespace or pods(),))
    settings = OperatorSettings(
        kubeconfig, context, some_namespaces(namespaces), chosen, own, host=host, port=port,
        metrics_auth=metrics_auth, webhooks=webhooks, webhook_host=webhook_host or host, webhook_port=webhook_port,
        webhook_certificates=webhook_certificates, default_strategy=default_strategy,
        allow_outside=allow_outside_preallocations, watch_filter=_label_value(watch_filter),
        **more,
    )  # fmt: skip
    try:
        if check:
            _print_settings(session, settings, asyncio.run(find_credentials(kubeconfig, context)()).server)
            return
        log_to_stderr(log)
        asyncio.run(_run(session, settings, shell.run_until))
    except CredentialsMissing as error:
        raise Invalid(f"--kubeconfig: {error}") from None
    except CannotListen as error:
        raise Invalid(f"{error.option}: {error}") from None
    except shell.PartEnded as error:
        raise click.ClickException(str(error)) from None


def _known(chosen: tuple[str, ...], there: Iterable[str]) -> tuple[str, ...]:
    """Return the controllers that were chosen; raise ``Invalid`` for a name that there is not."""
    if unknown := [name for name in chosen if name not in there]:
        raise Invalid(f"--controllers: there is no {unknown[0]!r}; there are: {', '.join(sorted(there))}")
    return chosen


async def _run(session: Session, settings: "OperatorSettings", run_until: "RunUntil") -> None:
    _collect_rarely()
    _read_in_small_pieces()
    _return_large_pieces()
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    await run_until(settings, stopped, lambda running: _announce(session, running))


def _collect_rarely() -> None:
    """Leave what stays for ever out of every garbage collection: walking the loaded modules took a seventh of the CPU.

    Objects of caches go without the collector, by their counts; cycles are left by exceptions and tasks, which are few.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTED_AFTER)


def _read_in_small_pieces() -> None:
    """Give each TLS connection a small buffer: of the 256 KB that asyncio gives it, a hundred connections take 25 MB.

    They take them only as answers grow large, so the memory would grow with what a pool holds.
    """
    SSLProtocol.max_size = TLS_BUFFER


def _return_large_pieces() -> None:
    """Let the C library return every large piece of memory to the system as soon as it is free.

    glibc raises its limit for that with every large piece that is freed, and keeps what is smaller. A pool that lists
    thousands of addresses is read as several texts of hundreds of kilobytes for each write. Another C library has no
    such limit.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, LARGE_PIECE)


def _print_settings(session: Session, settings: "OperatorSettings", server: str) -> None:
    """Print the settings as they are put together, and the server that the credentials are for."""
    document = {**dataclasses.asdict(settings), "server": server}
    lines = (f"{name} = {_shown(value)}" for name, value in document.items())
    answer(session, document, "\n".join(lines))


def _shown(value: object) -> str:
    return ",".join(value) if isinstance(value, tuple) else "" if value is None else str(value)


def names_in(text: str) -> tuple[str, ...]:
    """Return the names that an option lists, as in ``A,B``, each once."""
    return tuple(dict.fromkeys(filter(None, (part.strip() for part in text.split(",")))))


def some_namespaces(text: str | None) -> tuple[str, ...]:
    """Return the namespaces to work in; raise ``Invalid`` if the option is there and names none: that would be all."""
    names = names_in(text or "")
    if text is not None and not names:
        raise Invalid("--namespaces: it names none; without the option, the operator works in all namespaces")
    return namespaces_in("--namespaces", names)


def _label_value(text: str) -> str:
    """Return what a label may have as its value; raise ``Invalid`` for anything else, which no object can have."""
    if not LABEL_VALUE.fullmatch(text):
        allowed = "letters, digits, '-', '_' and '.', at most 63"
        raise Invalid(f"--watch-filter: {text!r} is no value of a label: {allowed}")
    return text


def namespaces_in(option: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return names that namespaces may have; another name raises ``Invalid``: it would never find anything."""
    for name in names:
        if not NAMESPACE.fullmatch(name):
            raise Invalid(f"{option}: {name!r} is no namespace: small letters, digits and '-', at most 63")
    return names


def _announce(session: Session, running: "Running") -> None:
    settings = running.context.settings
    url = f"http://{settings.host}:{running.port}"
    names = list(settings.controllers)
    if session.json:
        echo(
            session,
            json_line(
                {"url": url, "identity": settings.identity, "controllers": names, "webhook_port": running.webhook_port}
            ),
        )
        return
    echo(session, f"Tenure's operator {settings.identity} answers probes at {url}")
    if settings.webhooks and names:
        echo(session, f"Webhooks: {settings.webhook_host}:{running.webhook_port}")
    echo(
        session,
        f"Controllers: {', '.join(names)}"
        if names
        else "There are no controllers to run: nothing is written but the lease.",
    )


STRUCTURED = ("pool_event", "pool_fields")
"""What records of VM pools say for programs."""


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **{name: getattr(record, name) for name in STRUCTURED if hasattr(record, name)},
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False, default=str)


def log_to_stderr(form: str, *, stamped: bool = False) -> None:
    """Write the log lines of all libraries in one form: a reader of JSON lines meets no other line.

    Lines of text begin with the time only if they are ``stamped``: most services that keep them add it.
    """
    handler = logging.StreamHandler(sys.stderr)
    plain = logging.Formatter(("%(asctime)s " if stamped else "") + "%(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%SZ")
    plain.converter = time.gmtime
    handler.setFormatter(_JsonLines() if form == "json" else plain)
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.captureWarnings(True)
    logging.getLogger("tenure").setLevel(logging.INFO)
