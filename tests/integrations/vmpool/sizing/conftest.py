"""A stage for each mode."""

from tests.integrations.vmpool.modes.conftest import every

__all__ = ["every"]
