"""${message}."""

import sqlalchemy as sa
from alembic import op
${imports if imports else ""}
revision = "${up_revision}"
down_revision = "${down_revision}"
% if branch_labels:
branch_labels = ${repr(tuple(branch_labels))}
% endif


def upgrade() -> None:
    """${message}."""
    ${upgrades if upgrades else "pass"}
