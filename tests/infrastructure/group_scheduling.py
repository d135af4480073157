"""Tests that share a costly fixture run in one worker, by their mark ``xdist_group``.

xdist's own ``loadgroup`` writes the group into the node id of a test. pytest 9.2 ignores that (issue 1386 of
pytest-xdist), and reports nothing: the tests of a group are spread over all workers, and each worker starts the
servers of the group again. Here workers note the groups in the run's folder, and the scheduler reads them there.
"""

import json
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

FILE = "groups.json"


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Give each group to one worker, those of many tests first, and then tests that have none, one by one."""

    def __init__(self, config: pytest.Config, log: Producer, folder: Path) -> None:
        super().__init__(config, log)
        self._groups: dict[str, str] = {}
        self._file = folder / FILE

    def add_node_collection(self, node: WorkerController, collection: Sequence[str]) -> None:
        """Read the groups when a worker has collected, since it wrote them just before."""
        super().add_node_collection(node, collection)
        self._groups = json.loads(self._file.read_text("utf-8"))

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """Forget what a worker has done: after every test xdist counts what is pending in all that it ever gave out."""
        super().mark_test_complete(node, item_index, duration)
        scope = self._split_scope(self.registered_collections[node][item_index])
        if all(self.assigned_work[node][scope].values()):
            del self.assigned_work[node][scope]

    def _split_scope(self, nodeid: str) -> str:
        return self._groups.get(nodeid, nodeid)


def write_groups(items: Iterable[pytest.Item], folder: Path) -> None:
    """Note which test is in which group; every worker writes the same."""
    marked = ((item.nodeid, item.get_closest_marker("xdist_group")) for item in items)
    groups = {nodeid: str(mark.args[0]) for nodeid, mark in marked if mark}
    # Renamed into place, so that nobody reads half of what another worker writes.
    with tempfile.NamedTemporaryFile("w", dir=folder, delete=False, encoding="utf-8") as written:
        json.dump(groups, written)
    Path(written.name).replace(folder / FILE)
