"""The deployments door: cloud config and manifest in, reservations out (the BOSH flow). No terminal in it."""
