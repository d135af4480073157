"""The Neutron door, with a real Neutron on real databases."""
