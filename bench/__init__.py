"""The benchmark: the engine as shipped against the raw limits of its stores, measured side by side in one run."""
