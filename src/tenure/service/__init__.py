"""The use cases: allocate, release, edit the plan, read it, check it."""
