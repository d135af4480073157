"""What is done to VMs themselves, tried on real programs and servers of this machine."""
