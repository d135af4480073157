"""The OpenStack Neutron door: an IPAM driver that Neutron loads under the name ``tenure``."""
