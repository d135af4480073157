"""``tenure serve``: the ledger over HTTP."""

import dataclasses
import os
from typing import TYPE_CHECKING, Any

import click

from tenure.doors.cli.framework.click_base import command, with_options
from tenure.doors.cli.output.print_answer import answer, echo, json_line
from tenure.doors.cli.session import Session, pass_session
from tenure.doors.http.settings import Settings
from tenure.doors.http.settings_sources import Field, limit_fields, own_fields, read_settings
from tenure.kernel.errors import Invalid
from tenure.kernel.extras import how_to_install
from tenure.wiring import without_secrets

if TYPE_CHECKING:
    from tenure.doors.http.process.run_server import Ready

# The extra `rest` installs these; any other module that is not found is an error of ours.
PARTS = ("uvicorn", "uvloop", "httptools", "msgspec", "prometheus_client")


def _option(field: Field) -> Any:
    flag, default = field.name.replace("_", "-"), field.default
    shown = "" if default is None or field.type is bool else f" [default: {default}]"
    about = f"{field.metadata['about']}{shown}"
    if field.type is bool:
        return click.option(f"--{flag}/--no-{flag}", field.name, default=None, help=about)
    kind = "N" if field.type in (int, float, float | None) else "TEXT"
    return click.option(f"--{flag}", field.name, metavar="|".join(field.metadata.get("words") or [kind]), help=about)


settings_options = with_options(
    # --store goes with every command already.
    *(_option(each) for name, each in (own_fields() | limit_fields()).items() if name != "store")
)


@command("serve")
@click.option("--config", metavar="FILE", help="Settings in TOML; flags and the environment come before it.")
@click.option("--check", is_flag=True, help="Only check the settings, and tell them.")
@settings_options
@pass_session
def serve(session: Session, config: str | None, check: bool, **said: Any) -> None:
    """Serve the ledger over HTTP: REST under /api/v1, events, metrics, the web page.

    Each setting is a flag, a variable (TENURE_SERVE_PORT for --port) or a line of the file; the flag comes first. A
    ledger that has no admin token gets one, which is shown once. SIGTERM or Ctrl-C finishes what was accepted and
    stops; the second one stops at once.

    For example:
      tenure serve --port 8123 --log json --check
    """
    settings = read_settings(said | {"store": session.store}, os.environ, config)
    try:
        from tenure.doors.http.process import run_server, supervisor
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in PARTS:
            raise
        raise Invalid(f"serve: {error.name} is missing: {how_to_install('rest')}") from None
    run_server.check(settings)
    if check:
        _tell(session, settings)
        return
    bound = run_server.listen(settings)
    with bound:
        if settings.workers == 1:
            run_server.serve(settings, bound, lambda ready: _announce(session, ready))
        else:
            supervisor.Supervisor(settings, bound, lambda ready: _announce(session, ready)).run()


def _tell(session: Session, settings: Settings) -> None:
    """Tell the settings as they are put together; what opens the store is nobody's business."""
    told = dataclasses.asdict(settings) | {"store": without_secrets(settings.store)}
    limits = told.pop("limits")
    flat = {**told, **limits}
    answer(session, flat, "\n".join(f"{name} = {'' if value is None else value}" for name, value in flat.items()))


def _announce(session: Session, ready: "Ready") -> None:
    """Say where the server is and, once in a ledger's life, how to get in."""
    if session.json:
        document = {"url": ready.url, "store": ready.store, "token": ready.token}
        echo(session, json_line(document))
        return
    echo(session, f"Tenure serves {ready.store} at {ready.url}")
    if ready.token is not None:
        echo(session, f"First admin token, shown this once: {ready.token}")
        echo(session, f"Commands use this server by: export TENURE_SERVER={ready.url} TENURE_TOKEN={ready.token}")
    elif ready.token_file is None:
        told = f"tenure --store {ready.store} token add NAME --scope admin"
        echo(session, f"Log in with a token that you have, or make one: {told}")
