"""Documents as people write them: YAML with places, cloud configs, manifests; every fault at once."""
