"""The beginning of the contract branch."""

revision = "tenure_contract_1"
down_revision = "tenure_start"
branch_labels = ("contract",)


def upgrade() -> None:
    """Change nothing: a new table takes nothing away."""
