"""Where a child begins; importing this costs nothing, so that only children import Neutron."""

from multiprocessing.connection import Connection
from pathlib import Path

from tests.integrations.neutron.stage.settings import Settings


def serve(connection: Connection, settings: Settings, log: Path) -> None:
    """Be a server."""
    from tests.integrations.neutron.stage import child

    child.serve(connection, settings, log)
