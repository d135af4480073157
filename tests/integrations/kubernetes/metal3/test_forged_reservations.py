"""Reservations that nobody made, in the status of a pool on a real server: they only keep addresses back (KP13)."""

import pytest

from tenure.integrations.kubernetes.metal3 import pool_pass, pool_writes
from tenure.integrations.kubernetes.metal3.objects.ipam_kinds import IP_POOL
from tenure.integrations.kubernetes.runtime.resource_types import uid_of
from tests.integrations.kubernetes.metal3.serving import Namespace, until

STRANGE_S = 1.0


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let reservations of unknown claims count for a second, and not for ten."""
    for module in (pool_pass, pool_writes):
        monkeypatch.setattr(module, "STRANGE_S", STRANGE_S)


def forge(space: Namespace, **uids: str) -> None:
    """Write reservations by the last numbers of their addresses."""
    entries = [{"address": f"10.0.0.{name.lstrip('a')}", "uid": uid, "kind": "IPClaim"} for name, uid in uids.items()]
    space.patch(IP_POOL, "p", {"status": {"tenure": {"reserving": entries}}}, "status")


def test_kp13_forged_reservations_keep_addresses_back_for_a_while_and_give_nothing_away(served: Namespace) -> None:
    """For a claim that nobody knows, for one of another pool, and for one that has its address already."""
    served.pool("p", "10.0.0.1-10.0.0.4")
    served.pool("q", "10.1.0.1-10.1.0.9")
    mine, other = served.claim("mine"), served.claim("other", "q")
    assert (served.ip("mine"), served.ip("other")) == ("10.0.0.1", "10.1.0.1")
    until(lambda: "reserving" not in served.status())
    forge(served, a1="nobody", a2=uid_of(other), a3=uid_of(mine), a4="unknown")
    served.claim("next")
    served.claim("last")

    assert {served.ip("next"), served.ip("last")} <= {"10.0.0.2", "10.0.0.3", "10.0.0.4"}
    assert served.ip("mine") == "10.0.0.1"
    until(lambda: "reserving" not in served.status())
    until(lambda: served.status()["addresses"]["free"] == 1)
    served.claim("fourth")
    assert {served.ip(each) for each in ("mine", "next", "last", "fourth")} == {f"10.0.0.{n}" for n in range(1, 5)}
