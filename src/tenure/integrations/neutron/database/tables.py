"""The driver's tables in Neutron's own database: subnets as the driver was told of them, and who holds what.

They are written in both modes, through the session of the caller's transaction. With a shared ledger the ledger
decides who gets an address, and the row tells which of the ledger's holdings a transaction of Neutron's stands behind.
"""

import sqlalchemy as sa
from neutron_lib.db import model_base
from sqlalchemy.dialects import mysql, postgresql

# Neutron's database may compare texts without regard to case. Our names and digits compare by their bytes.
NAME = sa.String(255).with_variant(mysql.VARCHAR(255, charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb")
DIGITS = (
    sa.String(34)
    .with_variant(mysql.VARCHAR(34, charset="ascii", collation="ascii_bin"), "mysql", "mariadb")
    .with_variant(postgresql.VARCHAR(34, collation="C"), "postgresql")
)
# TEXT of MySQL ends at 64 KiB, and a subnet may have more pools than fit into that.
LONG_TEXT = sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb")


class SubnetRow(model_base.BASEV2):  # type: ignore[misc]  # Neutron's library has no types
    """A subnet: its block, its pools in order as JSON, the space it shares, and a mark that every change renews.

    Its number is Neutron's where Neutron said one.
    """

    __tablename__ = "tenure_subnets"

    id = sa.Column(sa.String(36), primary_key=True)
    neutron_subnet_id = sa.Column(sa.String(36), nullable=True)
    project_id = sa.Column(sa.String(255), nullable=True)
    cidr = sa.Column(sa.String(64), nullable=False)
    gateway_ip = sa.Column(sa.String(64), nullable=True)
    pools = sa.Column(LONG_TEXT, nullable=False)
    space = sa.Column(NAME, nullable=True)
    mark = sa.Column(sa.String(36), nullable=False)


class AllocationRow(model_base.BASEV2):  # type: ignore[misc]  # Neutron's library has no types
    """An address that is held, as hexadecimal digits that sort as addresses do; as which holding of a shared ledger.

    Since when, by the server's clock: where Neutron makes many ports at once, rows come a while before their ports do.
    """

    __tablename__ = "tenure_allocations"

    subnet_id = sa.Column(sa.String(36), sa.ForeignKey("tenure_subnets.id", ondelete="CASCADE"), primary_key=True)
    address = sa.Column(DIGITS, primary_key=True)
    owner = sa.Column(NAME, nullable=False, server_default="")
    generation = sa.Column(sa.BigInteger, nullable=False, server_default="0")
    since_s = sa.Column(sa.BigInteger, nullable=True)


class DeploymentRow(model_base.BASEV2):  # type: ignore[misc]  # Neutron's library has no types
    """What all servers of a deployment must agree on, and the number by which a ledger knows it: a row for each.

    ``agreement_lock`` says which row is which.
    """

    __tablename__ = "tenure_deployment"

    id = sa.Column(sa.Integer, primary_key=True, autoincrement=False)
    mode = sa.Column(sa.String(16), nullable=False)
    realm = sa.Column(sa.String(64), nullable=False)
    ledger = sa.Column(sa.String(36), nullable=False, server_default="")
