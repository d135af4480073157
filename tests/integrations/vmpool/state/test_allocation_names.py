"""Ids, pods, namespaces and nodes: what may be said, and what is refused before anything is read."""

from collections.abc import Callable
from typing import Any

import pytest

from tenure.integrations.vmpool.state.allocation_names import (
    check_allocation_id,
    check_node_name,
    check_pod_name,
    check_pod_namespace,
)
from tenure.kernel.errors import Invalid

Check = Callable[[Any], str]


@pytest.mark.parametrize(
    "value",
    [
        "a",
        "A",
        "nginx-7c5ddbdf54-x2x8p-3f1c9d2e8b7a4f60",
        "α-pod-β",
        "with blank inside",
        "😀",
        "a/b:c",
        "x" * 512,
        "<&>",
    ],
)
def test_an_id_is_any_short_text(value: str) -> None:
    assert check_allocation_id(value) == value


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("", "must not be empty"),
        ("x" * 513, "at most 512 bytes, not 513"),
        ("é" * 257, "at most 512 bytes, not 514"),
        ("x" * 2_000_000, "at most 512 bytes"),
        (" a", "white space"),
        ("a ", "white space"),
        ("a\u3000", "white space"),
        ("a\nb", "a control character"),
        ("a\x00b", "a control character"),
        ("a\u2028b", "a line separator"),
        ("a\ud800b", "half a character"),
        (None, "text is needed, not NoneType"),
        (5, "text is needed, not int"),
        (b"a", "text is needed, not bytes"),
    ],
)
def test_an_id_that_is_refused_names_the_field_and_the_reason(value: Any, reason: str) -> None:
    with pytest.raises(Invalid) as caught:
        check_allocation_id(value)

    assert caught.value.field == "allocation_id"
    assert caught.value.message.startswith("allocation_id: ")
    assert reason in caught.value.message
    assert len(caught.value.message) < 250


@pytest.mark.parametrize(
    ("check", "value"),
    [
        *[(check_pod_name, right) for right in ("", "web-0.x", "a" * 253)],
        *[(check_pod_namespace, right) for right in ("", "kube-system", "a" * 63)],
        (check_node_name, "ip-10-0-0-1.EC2.internal"),
    ],
)
def test_names_of_kubernetes_are_taken_as_they_are(check: Check, value: str) -> None:
    assert check(value) == value


@pytest.mark.parametrize(
    ("check", "value"),
    [
        *[(check_pod_name, wrong) for wrong in ("A", "a_b", "-a", "a-", "a..b", ".a", "a" * 254, "a\n", "ä", 5, None)],
        *[(check_pod_namespace, wrong) for wrong in ("A", "a.b", "-a", "a" * 64, "a\n", 5, None)],
        *[(check_node_name, wrong) for wrong in ("", "a b", "a\n", "a" * 254, 5, None)],
    ],
)
def test_other_names_are_refused_and_the_field_is_named(check: Check, value: Any) -> None:
    with pytest.raises(Invalid) as caught:
        check(value)

    assert caught.value.field == check.__name__.removeprefix("check_")
    assert caught.value.message.startswith(f"{caught.value.field}: ")
