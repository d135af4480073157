"""Namespaces that take no new objects, since they are being deleted (KP8)."""

from collections import OrderedDict

from tenure.integrations.kubernetes.runtime.api_errors import ApiError, ApiUnreachable

REMEMBERED = 1000
"""So many namespaces are remembered; one that is forgotten costs a refused request."""


class TerminatingNamespaces:
    """What the server said when it refused a create; a new object in a namespace shows that it is another by now."""

    def __init__(self) -> None:
        self._names: OrderedDict[str, None] = OrderedDict()

    def __contains__(self, namespace: str) -> bool:
        return namespace in self._names

    def note(self, namespace: str, error: ApiError | ApiUnreachable) -> bool:
        """Note why a create was refused; return whether it was because the namespace is being deleted."""
        if not isinstance(error, ApiError) or not error.is_namespace_going:
            return False
        self._names[namespace] = None
        if len(self._names) > REMEMBERED:
            self._names.popitem(last=False)
        return True

    def took(self, namespace: str) -> None:
        """Note that a namespace has a new object."""
        self._names.pop(namespace, None)
