"""Care for a deployment: what Neutron's own tables say, held against ours and the ledger; drift told and repaired."""
