"""What may be said of an allocation: its id, its pod, its namespace, its node. Checked before anything is read.

========== ========================= ==========================================================================
word       length                    characters
========== ========================= ==========================================================================
id         1 to 512 bytes of UTF-8   any but control characters, line separators and halves of characters; no
                                     white space at either end
pod        0 to 253                  those of a Kubernetes name: a-z, 0-9, ``-``, ``.``; empty: not known
namespace  0 to 63                   a-z, 0-9, ``-``; empty: not known
node       1 to 253                  printable, no white space
========== ========================= ==========================================================================

Ids are compared byte for byte: ids that differ in case, or in how an accent is composed, are different ids. The Go
managers check nothing. The empty id is refused although they take it: it comes from a variable that was not set, and
all callers with that mistake would share one VM. An entry that a Go manager made under it is released by its IP.
Refused as well are the few ids under which Tenure keeps an address from being given out: a word of its own, and the IP.
"""

import re
import unicodedata

from tenure.integrations.vmpool.state.held_back import HELD_BACK
from tenure.integrations.vmpool.state.ip_list import canonical_ip
from tenure.kernel.errors import Invalid
from tenure.kernel.names import shown

MAX_ID_BYTES = 512
MAX_OBJECT_NAME = 253
MAX_NAMESPACE = 63

OBJECT_NAME = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
FORBIDDEN = {"Cc": "a control character", "Cs": "half a character", "Zl": "a line separator", "Zp": "a line separator"}
"""By category of Unicode."""
FILLER = "moved-to-"
"""Ids of entries begin so that keep addresses from being given out where a pool has left; they end with the IP."""


def check_allocation_id(value: object, *, field: str = "allocation_id") -> str:
    """Return an id as it is, or say what is wrong with it."""
    text = _text(value, field)
    if not text:
        raise Invalid(
            f"{field}: an id must not be empty; an entry that another manager made under the empty id is released by "
            "its IP",
            field=field,
        )
    wrong = next((FORBIDDEN[kind] for kind in map(unicodedata.category, text) if kind in FORBIDDEN), "")
    if wrong:
        raise Invalid(f"{field}: {shown(text)} holds {wrong}", field=field)
    if len(text.encode()) > MAX_ID_BYTES:
        raise Invalid(f"{field}: an id has at most {MAX_ID_BYTES} bytes, not {len(text.encode())}", field=field)
    if text != text.strip():
        raise Invalid(f"{field}: {shown(text)} begins or ends with white space", field=field)
    if text.startswith((HELD_BACK, FILLER)) and canonical_ip(text.rpartition("-")[2]) is not None:
        raise Invalid(f"{field}: {shown(text)} is an id of Tenure's own, which no pod has", field=field)
    return text


def check_pod_name(value: object, *, field: str = "pod_name") -> str:
    """Return the name of a pod, which may be empty, or say what is wrong with it."""
    return "" if value == "" else check_object_name(value, field=field)


def check_pod_namespace(value: object, *, field: str = "pod_namespace") -> str:
    """Return the namespace of a pod, which may be empty, or say what is wrong with it."""
    return "" if value == "" else check_namespace(value, field=field)


def check_object_name(value: object, *, field: str) -> str:
    """Return a name that an object in Kubernetes can have, or say what is wrong with it."""
    return _kubernetes_name(value, field, OBJECT_NAME, MAX_OBJECT_NAME, "a-z, 0-9, '-' and '.'")


def check_namespace(value: object, *, field: str) -> str:
    """Return a name that a namespace can have, or say what is wrong with it."""
    return _kubernetes_name(value, field, NAMESPACE, MAX_NAMESPACE, "a-z, 0-9 and '-'")


def check_node_name(value: object, *, field: str = "node_name") -> str:
    """Return the name of a node, or say what is wrong with it.

    Files such as ``/etc/hostname`` have names that Kubernetes would not take; they are only compared with each other.
    """
    text = _text(value, field)
    if not text or len(text) > MAX_OBJECT_NAME or not text.isprintable() or " " in text:
        raise Invalid(
            f"{field}: a node name has 1 to {MAX_OBJECT_NAME} printable characters and no blanks, not {shown(text)}",
            field=field,
        )
    return text


def _kubernetes_name(value: object, field: str, form: re.Pattern[str], longest: int, letters: str) -> str:
    text = _text(value, field)
    if len(text) > longest:
        raise Invalid(f"{field}: at most {longest} characters, not {len(text)}", field=field)
    if not form.fullmatch(text):
        raise Invalid(
            f"{field}: {shown(text)} is no name in Kubernetes, which has {letters}, and begins and ends with a letter "
            "or a digit",
            field=field,
        )
    return text


def _text(value: object, field: str) -> str:
    if not isinstance(value, str):
        raise Invalid(f"{field}: text is needed, not {type(value).__name__}", field=field)
    return value
