"""The options of the driver: the section ``[tenure]`` of Neutron's configuration."""

from typing import Any

from oslo_config import cfg

GROUP = "tenure"

DATABASE, LEDGER = "database", "ledger"
"""The two modes: what is held is in Neutron's own database, or in a ledger shared with others."""

LEDGERS = ("postgresql", "postgres")
"""The schemes of ledgers that all servers of a deployment can reach at once, whatever becomes of one of them."""

OPTIONS = [
    cfg.StrOpt(
        "mode",
        default=DATABASE,
        choices=[
            (DATABASE, "What is held is written to tables in Neutron's own database."),
            (LEDGER, "What is held is kept in a Tenure ledger, which other orchestrators may share."),
        ],
        help="Where addresses are kept. The same on every server; a server that differs refuses to work.",
    ),
    cfg.StrOpt(
        "ledger",
        secret=True,
        help="The ledger of mode 'ledger', such as postgresql://tenure:secret@db.example/tenure. Needs "
        "tenure[postgres].",
    ),
    cfg.FloatOpt(
        "timeout_s",
        default=5.0,
        min=0.05,
        help="For how long a request waits for the ledger, in seconds; then it is answered with 503 and leaves "
        "nothing behind.",
    ),
    cfg.StrOpt(
        "realm",
        default="neutron",
        regex=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$",
        max_length=64,
        help="How this deployment is called in a ledger: owners are REALM:port/ID, networks REALM-SUBNET_ID. Two "
        "deployments that share a ledger need two names.",
    ),
    cfg.DictOpt(
        "space_of_network",
        default={},
        help="Spaces of the ledger by network: NETWORK_ID:SPACE,… A subnet is a space of its own unless it is "
        "mapped here, by its address scope or by its subnet pool (in this order).",
    ),
    cfg.DictOpt("space_of_address_scope", default={}, help="Spaces by address scope: ADDRESS_SCOPE_ID:SPACE,…"),
    cfg.DictOpt("space_of_subnet_pool", default={}, help="Spaces by subnet pool: SUBNET_POOL_ID:SPACE,…"),
]


def register(conf: Any = cfg.CONF) -> Any:
    """Make the options known, and return their section."""
    conf.register_opts(OPTIONS, group=GROUP)
    return conf[GROUP]


def against_ledger(url: str) -> str:
    """Say what is against a ledger that the servers of a deployment are to share; nothing if it will do."""
    scheme, colon, _ = url.partition("://")
    if colon and scheme in LEDGERS:
        return ""
    named = scheme if colon else url.partition(":")[0]
    return f"servers share a ledger on PostgreSQL, postgresql://USER:PASSWORD@HOST/DATABASE; {named!r} is none"


def list_opts() -> list[tuple[str, list[Any]]]:
    """Tell oslo's generator of sample files which options there are."""
    return [(GROUP, list(OPTIONS))]
