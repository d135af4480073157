"""Neutron's own suites, unmodified, as its package ships them, with our driver in the place of the stock one."""
