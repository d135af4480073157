"""The environment of the revisions; alembic runs this file for every command that Neutron's tool is given.

Neutron's own tables are in the same database and have a history of their own: ours is noted in a version table of its
own, and a comparison with the models looks at no table but ours.
"""

from typing import Any

from alembic import context
from neutron.db.migration import autogen
from neutron.db.migration.connection import DBConnection
from neutron_lib.db import model_base
from oslo_config import cfg

from tenure.integrations.neutron.database import tables

VERSION_TABLE = "alembic_version_tenure"
OURS = {model.__tablename__ for model in (tables.SubnetRow, tables.AllocationRow, tables.DeploymentRow)}


def is_ours(_: object, name: str | None, kind: str, __: bool, ___: object) -> bool:
    """Leave the tables of Neutron, and of other drivers, alone."""
    return kind != "table" or name in OURS


def storage_engine(conf: Any) -> str:
    """Tell the storage engine of MySQL: as the operator says, or as Neutron's own tables have it."""
    try:
        asked: str = conf.command.mysql_engine
    except cfg.NoSuchOptError:  # only the command 'upgrade' has it
        asked = ""
    return asked or str(model_base.BASEV2.__table_args__["mysql_engine"])


def write_script(conf: Any) -> None:
    """Print the statements instead of running them."""
    url = conf.database.connection
    database = {"url": url} if url else {"dialect_name": conf.database.engine}
    context.configure(**database, version_table=VERSION_TABLE, mysql_engine=storage_engine(conf))
    with context.begin_transaction():
        context.run_migrations()


def run(conf: Any) -> None:
    """Run the revisions on Neutron's database."""
    with DBConnection(conf.database.connection, context.config.attributes.get("connection")) as connection:
        context.configure(
            connection=connection,
            target_metadata=model_base.BASEV2.metadata,
            version_table=VERSION_TABLE,
            include_object=is_ours,
            process_revision_directives=autogen.process_revision_directives,
            mysql_engine=storage_engine(conf),
        )
        with context.begin_transaction():
            context.run_migrations()


# Neutron's tool hangs its configuration on alembic's.
neutron_conf: Any = vars(context.config)["neutron_config"]
if context.is_offline_mode():
    write_script(neutron_conf)
else:
    run(neutron_conf)
