"""The one fork server of a process: what its children need is imported once, before the first of them is forked.

A process has one fork server, and naming modules for it replaces what was named before. So all of them are named here.
A module that cannot be imported is passed over without a word; ``test_forks.py`` looks into a child.
"""

import multiprocessing

PRELOADED = (
    "tenure.stores.postgres.store",
    "tests.integrations.bosh.conformance.crowd",
    "tests.integrations.bosh.kills.dying",
    "tests.integrations.ganeti.files.load.follow_process",
    "tests.integrations.neutron.stage.child",
    "tests.integrations.vmpool.pool_crowd",
    "tests.infrastructure.frozen_imports",
)

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload([*PRELOADED])
