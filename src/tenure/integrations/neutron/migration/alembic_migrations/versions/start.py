"""The root of both branches: expand, which runs beside servers at work, and contract, for which they are stopped."""

revision = "tenure_start"
down_revision = None


def upgrade() -> None:
    """Change nothing: there is nothing yet."""
