"""Programs that make what is generated or built: they are run from the root of the tree."""
