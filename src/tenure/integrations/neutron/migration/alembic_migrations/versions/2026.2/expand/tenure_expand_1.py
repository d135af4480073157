"""The driver's first tables: subnets, allocations, and what the servers of a deployment agree on.

Neutron's database decides what characters a text may have and how texts compare, which may be without regard to case.
Addresses, owners and spaces are names of ours: they compare by their bytes, and an owner or a space may have any
character. Ids stay as the database has them, so that they compare with Neutron's by index.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import mysql, postgresql

revision = "tenure_expand_1"
down_revision = "tenure_start"
branch_labels = ("expand",)


def upgrade() -> None:
    """Make the tables."""
    engine: str = op.get_context().opts["mysql_engine"]
    op.create_table(
        "tenure_subnets",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("neutron_subnet_id", sa.String(36), nullable=True),
        sa.Column("project_id", sa.String(255), nullable=True),
        sa.Column("cidr", sa.String(64), nullable=False),
        sa.Column("gateway_ip", sa.String(64), nullable=True),
        sa.Column("pools", sa.Text().with_variant(mysql.MEDIUMTEXT(), "mysql", "mariadb"), nullable=False),
        sa.Column("space", _name(), nullable=True),
        sa.Column("mark", sa.String(36), nullable=False),
        mysql_engine=engine,
    )
    op.create_table(
        "tenure_allocations",
        sa.Column("subnet_id", sa.String(36), sa.ForeignKey("tenure_subnets.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("address", _digits(), primary_key=True),
        sa.Column("owner", _name(), nullable=False, server_default=""),
        sa.Column("generation", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("since_s", sa.BigInteger, nullable=True),
        mysql_engine=engine,
    )
    op.create_table(
        "tenure_deployment",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("mode", sa.String(16), nullable=False),
        sa.Column("realm", sa.String(64), nullable=False),
        sa.Column("ledger", sa.String(36), nullable=False, server_default=""),
        mysql_engine=engine,
    )


def _digits() -> sa.String:
    """Return the type of hexadecimal digits that sort as bytes."""
    return (
        sa.String(34)
        .with_variant(mysql.VARCHAR(34, charset="ascii", collation="ascii_bin"), "mysql", "mariadb")
        .with_variant(postgresql.VARCHAR(34, collation="C"), "postgresql")
    )


def _name() -> sa.String:
    """Return the type of a name: any characters, and other bytes are another name."""
    binary = mysql.VARCHAR(255, charset="utf8mb4", collation="utf8mb4_bin")
    return sa.String(255).with_variant(binary, "mysql", "mariadb")
