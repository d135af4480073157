"""Points in the course of a request at which something happens: an error, a deadlock, or a stop until told to go on."""

from collections.abc import Callable
from typing import Any

from neutron_lib.db import api as db_api
from oslo_db import exception as db_exc
from sqlalchemy import event
from sqlalchemy.orm import Session

from tests.integrations.neutron.stage.neutron import Neutron

COMMITTING, COMMITTED = "committing", "committed"
"""The session is about to commit its outermost transaction (and to write what it has not written yet); it has."""

COMMIT_SENT, COMMIT_DONE = "commit_sent", "commit_done"
"""The database is about to commit; it has, and nobody was told yet. An error here leaves doubt."""

AFTER_RELEASE = {"delete_port": "port_released", "delete_subnet": "subnet_removed"}
"""By what Neutron's core does: the point when the driver has done its part, and the transaction is still open."""

UPDATE_BEGUN = "update_port_begun"
"""Neutron has read a port that is to be changed, and nothing is changed yet."""


class Trouble(Exception):
    """What goes wrong on purpose."""


class Points:
    """Every point of one server, and what happens there."""

    def __init__(self, neutron: Neutron, stop: Callable[[str], None]) -> None:
        self._stop = stop
        self._armed: dict[str, tuple[str, int]] = {}
        self._later: dict[str, tuple[str, str, int]] = {}
        self._watch_mechanism_driver(neutron)
        self._watch_core(neutron)
        self._watch_database()
        event.listen(Session, "before_commit", lambda session: self._at_commit(COMMITTING, session))
        event.listen(Session, "after_commit", lambda session: self._at_commit(COMMITTED, session))

    def arm(self, point: str, what: str, *, passed: int = 0, since: str | None = None) -> None:
        """Let something happen once: ``error``, ``deadlock`` or ``stop``.

        The point is ``passed`` so many times before; it counts only from when another point was reached (``since``).
        """
        if since is None:
            self._armed[point] = (what, passed)
        else:
            self._later[since] = (point, what, passed)

    def check(self) -> None:
        """Find nothing armed any more: a fault that never came proves nothing."""
        left = [*self._armed, *self._later]
        self._armed.clear()
        self._later.clear()
        assert not left, f"never reached: {left}"

    def pass_by(self, point: str) -> None:
        """Do what is to be done here."""
        what, passed = self._armed.pop(point, ("", 0))
        if point in self._later:
            later, happens, skipped = self._later.pop(point)
            self.arm(later, happens, passed=skipped)
        if what and passed:
            self._armed[point] = (what, passed - 1)
        elif what:
            self._happen(point, what)

    def _happen(self, point: str, what: str) -> None:
        if what == "error":
            raise Trouble(point)
        if what == "deadlock":
            raise db_exc.DBDeadlock
        self._stop(point)

    def _at_commit(self, point: str, session: Any) -> None:
        if session.get_nested_transaction() is None:
            self.pass_by(point)

    def _watch_mechanism_driver(self, neutron: Neutron) -> None:
        if not hasattr(neutron.plugin, "mechanism_manager"):
            return  # the base plugin has no such drivers
        driver = neutron.plugin.mechanism_manager.ordered_mech_drivers[0].obj
        for verb in ("create", "update", "delete"):
            for noun in ("port", "subnet"):
                name = f"{verb}_{noun}_precommit"
                setattr(driver, name, self._then(getattr(driver, name), name))

    def _watch_core(self, neutron: Neutron) -> None:
        for name, point in AFTER_RELEASE.items():
            setattr(neutron.plugin.ipam, name, self._then(getattr(neutron.plugin.ipam, name), point))
        update = neutron.plugin.ipam.update_port

        def update_port(*words: Any, **named: Any) -> Any:
            self.pass_by(UPDATE_BEGUN)
            return update(*words, **named)

        neutron.plugin.ipam.update_port = update_port

    def _watch_database(self) -> None:
        dialect = db_api.CONTEXT_WRITER.get_engine().dialect
        commit = dialect.do_commit

        def do_commit(connection: Any) -> None:
            self.pass_by(COMMIT_SENT)
            commit(connection)
            self.pass_by(COMMIT_DONE)

        dialect.do_commit = do_commit

    def _then(self, work: Callable[..., Any], point: str) -> Callable[..., Any]:
        def done(*words: Any, **named: Any) -> Any:
            result = work(*words, **named)
            self.pass_by(point)
            return result

        return done
