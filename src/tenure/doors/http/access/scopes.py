"""What a token may do, in words: ``read``, ``allocate:net1``, ``allocate:*``, ``admin``."""

from collections.abc import Sequence

from tenure.doors.http.routing.principal import ANY_NETWORK, Need
from tenure.kernel.errors import Invalid
from tenure.kernel.names import check_name, shown

MOST_SCOPES = 100
ALLOCATE = f"{Need.ALLOCATE}:"


def read_scopes(texts: Sequence[str]) -> tuple[str, ...]:
    """Return scopes in one order, each once, or say which of them is none."""
    # A text is a sequence, too: "read" would be taken for four scopes of one letter.
    if isinstance(texts, str) or not texts:
        raise Invalid("scopes: at least one is needed: read, allocate:NETWORK, allocate:* or admin", field="scopes")
    if len(texts) > MOST_SCOPES:
        raise Invalid(f"scopes: at most {MOST_SCOPES}, not {len(texts)}", field="scopes")
    return tuple(sorted({_checked(text) for text in texts}))


def _checked(text: object) -> str:
    if text in (Need.READ.value, Need.ADMIN.value):
        return str(text)
    if isinstance(text, str) and text.startswith(ALLOCATE):
        return ALLOCATE + check_name(text.removeprefix(ALLOCATE), field="scopes")
    hint = f"; write allocate:NETWORK, or allocate:{ANY_NETWORK} for all" if text == Need.ALLOCATE.value else ""
    raise Invalid(f"scopes: {shown(text)} is none of read, allocate:NETWORK and admin{hint}", field="scopes")


def named_networks(scopes: Sequence[str]) -> frozenset[str]:
    """Return the networks that scopes name, by the names that were said; without ``*``, which names none."""
    said = (scope.removeprefix(ALLOCATE) for scope in scopes if scope.startswith(ALLOCATE))
    return frozenset(said) - {ANY_NETWORK}
