"""The language of the revised Ganeti design: networks, subnets, pools, instances and their NICs."""
