"""What alembic runs: the environment, and the revisions in order."""
