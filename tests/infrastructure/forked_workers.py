"""Tests in several processes, each a fork of the one that has collected them: ``-n 3``; ``-n 0`` is one process.

Tests by the thousand take half a minute of CPU to import and collect. Workers that start anew, as those of pytest-xdist
do, pay for that again, each of them; a fork has all of it. Tests with the same mark ``one_worker`` run in one worker.
A worker that dies fails the test that it ran, and another takes its place.
"""

import atexit
import gc
import os
import random
import sys
import threading
import traceback
import warnings
from collections import deque
from collections.abc import Sequence
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any, NoReturn

import pytest

WORKER = "TENURE_TEST_WORKER"
"""The environment variable that says which worker a test runs in."""


class ForkedWorkers:
    """The plugin that spreads the tests of a session over workers."""

    def __init__(self, count: int) -> None:
        self._count = count

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run the tests in workers, where there is something to spread."""
        options = session.config.option
        if options.collectonly or options.usepdb or session.testsfailed or len(session.items) < 2:
            return None
        _Leader(session).lead(self._count)
        return True


class _Worker:
    def __init__(self, number: int, pid: int, line: "Connection[Any, Any]") -> None:
        self.number = number
        self.pid = pid
        self.line = line
        self.tests: deque[int] = deque()  # what was handed out and not heard of yet; the first one is running
        self.group: deque[int] = deque()  # what it gets next
        self.is_last_told = False

    def hand_out(self, test: int | None) -> None:
        try:
            self.line.send(test)
        except OSError:
            return  # it died; what it was given is seen when its line ends


class _Leader:
    """The process that collected: it hands out tests and hears of them."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        self._hook = session.config.hook
        self._groups = deque(group_tests(session.items))
        self._workers: dict[Any, _Worker] = {}

    def lead(self, count: int) -> None:
        if threading.active_count() > 1:
            raise RuntimeError(f"a fork would lose threads that importing tests started: {threading.enumerate()}")
        if reporter := self._session.config.pluginmanager.get_plugin("terminalreporter"):
            reporter.showfspath = False  # tests of many files take turns
        self._session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # one for all workers
        gc.collect()
        gc.freeze()  # what was imported stays, and is shared with the workers unless somebody writes to it
        try:
            for number in range(min(count, len(self._groups))):
                self._hire(number)
            while self._workers:
                for line in wait([*self._workers]):
                    self._hear(self._workers[line])
                self._stop_if_asked()
        finally:
            for worker in self._workers.values():
                worker.line.close()  # which it takes for the end of the run
                os.waitpid(worker.pid, 0)

    def _hire(self, number: int) -> None:
        near, far = Pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # eventlet, which Neutron imports, warns of forks; here it has not begun
            pid = os.fork()
        if pid == 0:
            for line in (near, *self._workers):
                line.close()
            _work(self._session, far, number)
        far.close()
        worker = self._workers[near] = _Worker(number, pid, near)
        self._feed(worker)

    def _feed(self, worker: _Worker) -> None:
        """Keep a worker in work: to tear down what nobody needs after a test, it has to know the next one.

        It gets no more than these two, for a line has little room: with a group of a thousand, the leader would wait
        for the worker to read, and the worker for the leader to hear of tests that it has run.
        """
        while len(worker.tests) < 2 and (worker.group or self._groups):
            if not worker.group:
                worker.group.extend(self._groups.popleft())
            worker.tests.append(worker.group.popleft())
            worker.hand_out(worker.tests[-1])
        if not worker.group and not self._groups and not worker.is_last_told:
            worker.is_last_told = True
            worker.hand_out(None)

    def _hear(self, worker: _Worker) -> None:
        try:
            told: Sequence[tuple[str, Any]] = worker.line.recv()
        except (EOFError, OSError):
            self._dismiss(worker)
            return
        item = self._session.items[worker.tests.popleft()]
        self._feed(worker)
        for kind, data in told:
            if kind == "report":
                report = self._hook.pytest_report_from_serializable(config=self._session.config, data=data)
                self._hook.pytest_runtest_logreport(report=report)
            else:
                message = warnings.WarningMessage(*data)
                self._hook.pytest_warning_recorded.call_historic(
                    kwargs={"warning_message": message, "when": "runtest", "nodeid": item.nodeid, "location": None}
                )
        self._hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def _dismiss(self, worker: _Worker) -> None:
        """Take leave of a worker that ended. If it died, fail the test that it ran, and hand out the others again."""
        del self._workers[worker.line]
        worker.line.close()
        _, status = os.waitpid(worker.pid, 0)
        if worker.tests:
            self._fail(self._session.items[worker.tests.popleft()], os.waitstatus_to_exitcode(status))
        if left := [*worker.tests, *worker.group]:
            self._groups.appendleft(left)
        if self._groups:
            self._hire(worker.number)

    def _fail(self, item: pytest.Item, code: int) -> None:
        reason = f"its worker died with exit code {code}"
        report = pytest.TestReport(item.nodeid, item.location, {}, "failed", reason, "call")
        self._hook.pytest_runtest_logreport(report=report)
        self._hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def _stop_if_asked(self) -> None:
        if self._session.shouldfail:
            raise self._session.Failed(self._session.shouldfail)
        if self._session.shouldstop:
            raise self._session.Interrupted(self._session.shouldstop)


def group_tests(items: Sequence[pytest.Item]) -> list[list[int]]:
    """Return the numbers of the tests that must run in one worker, groups of many first: they take longest."""
    groups: dict[str, list[int]] = {}
    for number, item in enumerate(items):
        groups.setdefault(group_of(item) or item.nodeid, []).append(number)
    return sorted(groups.values(), key=len, reverse=True)


def group_of(item: pytest.Item) -> str:
    """Return the group of a test; nothing if it may run anywhere."""
    mark = item.get_closest_marker("one_worker")
    return f"group {mark.args[0]}" if mark else ""


def is_last_of_its_group(item: pytest.Item, following: pytest.Item) -> bool:
    """Return whether a worker has done all tests of a group."""
    return bool(group_of(item)) and group_of(item) != group_of(following)


class _Told:
    """The plugin of a worker that keeps what the leader is to hear of a test."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._told: list[tuple[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._told.append(("report", data))

    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage) -> None:
        said = (str(warning_message.message), UserWarning, warning_message.filename, warning_message.lineno)
        self._told.append(("warning", said))

    def take(self) -> list[tuple[str, Any]]:
        told, self._told = self._told, []
        return told


def _work(session: pytest.Session, line: "Connection[Any, Any]", number: int) -> NoReturn:
    """Be a worker: run tests until there are no more, or the leader is gone."""
    code = 1
    try:
        told = _settle(session.config, number)
        _run_tests(session, line, told)
        code = 0
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        session._setupstate.teardown_exact(None)
    except BaseException:
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _run_tests(session: pytest.Session, line: "Connection[Any, Any]", told: _Told) -> None:
    test: int | None = line.recv()
    while test is not None:
        following: int | None = line.recv()
        item, after = session.items[test], None if following is None else session.items[following]
        if after is not None and is_last_of_its_group(item, after):
            after = None  # nobody else needs the servers that its group shared
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        line.send(told.take())
        test = following


class _Terminal:
    """What is left of the terminal's reporter in a worker: a place for the stacks of a test that takes too long."""

    def __init__(self, config: pytest.Config) -> None:
        self._tw = pytest.TerminalReporter(config, sys.__stderr__)._tw


def _settle(config: pytest.Config, number: int) -> _Told:
    """Part from the process that this one was forked from: its exit functions, chance, output, folder."""
    atexit._clear()  # its folders are not this worker's to remove
    random.seed()
    os.environ[WORKER] = f"worker{number}"
    plugins = config.pluginmanager
    if (reporter := plugins.get_plugin("terminalreporter")) is not None:
        plugins.unregister(reporter)
        plugins.register(_Terminal(config), "terminalreporter")
    if (capture := plugins.get_plugin("capturemanager")) is not None:
        capture.stop_global_capturing()
        capture.start_global_capturing()
    factory = config._tmp_path_factory  # type: ignore[attr-defined]
    folder = factory.getbasetemp() / os.environ[WORKER]
    folder.mkdir(mode=0o700, exist_ok=True)
    factory._basetemp = folder
    told = _Told(config)
    plugins.register(told)
    return told
