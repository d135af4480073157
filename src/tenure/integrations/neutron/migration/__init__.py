"""The driver's tables, brought into Neutron's database by ``neutron-db-manage --subproject tenure upgrade head``."""
