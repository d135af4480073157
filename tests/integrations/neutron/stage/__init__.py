"""A real Neutron on stage: its server as processes of a test's own, on real databases, without agents."""
