"""What Neutron's configuration says, and what the caller says instead."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from oslo_config import cfg
from oslo_db import options as db_options

from tenure.integrations.neutron import options
from tenure.integrations.neutron.space_mapping import NOTHING_SHARED, Spaces, mapped_spaces
from tenure.kernel.errors import Invalid


@dataclass(frozen=True, slots=True)
class NeutronSettings:
    """A deployment as its configuration describes it."""

    database: str
    mode: str
    realm: str
    ledger: str | None = None
    spaces: Spaces = NOTHING_SHARED


def read_settings(files: Sequence[str], said: Mapping[str, str | None]) -> NeutronSettings:
    """Read Neutron's configuration from files, or from where Neutron looks for it; what is ``said`` wins."""
    conf = cfg.ConfigOpts()
    conf.register_opts(db_options.database_opts, "database")
    try:
        words = [word for file in files for word in ("--config-file", file)]
        conf(words, project="neutron", default_config_dirs=[] if files else None)
        section = options.register(conf)
        for name in ("mode", "ledger", "realm"):
            if said.get(name) is not None:
                conf.set_override(name, said[name], options.GROUP)
        found = NeutronSettings(
            said.get("database") or conf.database.connection or "",
            section.mode,
            section.realm,
            section.ledger,
            mapped_spaces(section),
        )
    except (cfg.Error, ValueError) as error:
        raise Invalid(f"configuration: {error}", field="config_file") from error
    return _checked(found)


def _checked(settings: NeutronSettings) -> NeutronSettings:
    if not settings.database:
        said = "say --database URL, or --config-file FILE with [database] connection"
        raise Invalid(f"database: nobody says which is Neutron's; {said}", field="database")
    if settings.mode == options.LEDGER and not settings.ledger:
        raise Invalid("ledger: mode 'ledger' needs the URL of one: --ledger, or [tenure] ledger", field="ledger")
    if settings.mode == options.LEDGER and (refusal := options.against_ledger(settings.ledger or "")):
        raise Invalid(f"ledger: {refusal}", field="ledger")
    if settings.mode == options.DATABASE and settings.spaces:
        raise Invalid("mode: [tenure] space_of_… can be had only with mode 'ledger'", field="mode")
    return settings
