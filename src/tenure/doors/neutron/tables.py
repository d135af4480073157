"""The driver's tables in Neutron's own database: subnets as the driver was told of them, and who holds what."""

import sqlalchemy as sa
from neutron_lib.db import model_base


class SubnetRow(model_base.BASEV2):  # type: ignore[misc]  # Neutron's library has no types
    """A subnet: its block, its pools in order as JSON, and a version that every change raises."""

    __tablename__ = "tenure_subnets"

    id = sa.Column(sa.String(36), primary_key=True)
    neutron_subnet_id = sa.Column(sa.String(36), nullable=True, index=True)
    project_id = sa.Column(sa.String(255), nullable=True)
    cidr = sa.Column(sa.String(64), nullable=False)
    gateway_ip = sa.Column(sa.String(64), nullable=True)
    pools = sa.Column(sa.Text, nullable=False)
    version = sa.Column(sa.BigInteger, nullable=False)


class AllocationRow(model_base.BASEV2):  # type: ignore[misc]  # Neutron's library has no types
    """An address that is held. It is written as hexadecimal digits that sort as addresses do."""

    __tablename__ = "tenure_allocations"

    subnet_id = sa.Column(sa.String(36), sa.ForeignKey("tenure_subnets.id", ondelete="CASCADE"), primary_key=True)
    address = sa.Column(sa.String(34), primary_key=True)
    owner = sa.Column(sa.String(255), nullable=False, server_default="")
