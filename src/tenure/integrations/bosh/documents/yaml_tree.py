"""YAML in which everything knows where it stands. Read by the library's safe loader: no tags, no objects."""

import math
import re
from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from tenure.integrations.bosh.model.bosh_errors import BoshErrorKind, BoshFault, DocumentPlace, Rejected
from tenure.kernel.errors import Invalid
from tenure.kernel.names import check_name, shown

LARGEST = 4 * 1024 * 1024
DEEPEST = 64

MOST_VALUES = 150_000
"""Keys, texts, numbers, lists and mappings of a document; what an alias stands for counts each time it is said."""

TOO_DEEP = f"more than {DEEPEST} things inside each other"

OWN = "x-"

VARIABLE = re.compile(r"\(\(!?[-/.:\w]+\)\)")
"""A variable as BOSH writes it: ((name)), ((/path/name)), ((name.part)), ((!name))."""

INTERPOLATE = "interpolate the document first, as `bosh interpolate` does"

MERGE = "tag:yaml.org,2002:merge"

Pairs = dict[str, yaml.Node]
"""What a mapping says: nodes by key."""

NAMES = {dict: "a mapping", list: "a list", str: "text", int: "a whole number", bool: "true or false"}


class Tree:
    """A value and where it stands. ``value`` is plain: mappings hold trees by key, lists hold trees."""

    __slots__ = ("place", "value")

    def __init__(self, value: Any, place: DocumentPlace) -> None:
        self.value = value
        self.place = place

    def __contains__(self, key: str) -> bool:
        return isinstance(self.value, dict) and key in self.value

    def plain(self) -> Any:
        """Return the value without its places."""
        if isinstance(self.value, dict):
            return {key: tree.plain() for key, tree in self.value.items()}
        if isinstance(self.value, list):
            return [tree.plain() for tree in self.value]
        return self.value


class Variables:
    """A text in which variables were left, as ``((internal_cidr))``: no text, so that it is taken for nothing else."""

    __slots__ = ("names",)

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)

    def __str__(self) -> str:
        return ", ".join(self.names)


class DocumentFaults:
    """What was found wrong so far."""

    def __init__(self) -> None:
        self.found: list[BoshFault] = []

    def add(self, kind: BoshErrorKind, message: str, place: DocumentPlace | None = None) -> None:
        """Note a fault, and go on."""
        self.found.append(BoshFault(kind, message, place))

    def settle(self) -> None:
        """Refuse the document if anything was wrong with it."""
        if self.found:
            raise Rejected(self.found)


class Reader:
    """Takes typed values out of trees; what has another type is a fault with its place, and stands for nothing."""

    def __init__(self, faults: DocumentFaults) -> None:
        self.faults = faults

    def get(self, tree: Tree, key: str, kind: type, *, needed: bool = False) -> Any:
        """Return the plain value (or for mappings and lists the tree) of a key; None if it is absent, null or wrong."""
        child = tree.value.get(key) if isinstance(tree.value, dict) else None
        if child is None or child.value is None:
            if needed:
                self.faults.add(BoshErrorKind.GENERIC, f"Required property '{key}' was not specified", tree.place)
            return None
        if not _is(child.value, kind):
            self.refuse_value(child, f"must be {NAMES[kind]}, not {_told(child.value)}")
            return None
        return child if kind in (dict, list) else child.value

    def each(self, tree: Tree, key: str, kind: type = dict, *, needed: bool = False) -> Iterator[Tree]:
        """Give the members of a list that have the right type."""
        found = self.get(tree, key, list, needed=needed)
        for member in [] if found is None else found.value:
            if _is(member.value, kind):
                yield member
            else:
                self.refuse_value(member, f"must be {NAMES[kind]}, not {_told(member.value)}")

    def properties(self, tree: Tree, key: str) -> dict[str, Any]:
        """Return a mapping that is handed on as it is; what stands in it is judged only for variables left in it."""
        found = self.get(tree, key, dict)
        for variable in [] if found is None else _with_variables(found):
            self.refuse_value(variable, "")
        return {} if found is None else dict(found.plain())

    def refuse_value(self, tree: Tree, wanted: str) -> None:
        """Refuse a value that is not what is ``wanted``; where variables were left in it, they are the reason."""
        told = f"Property '{tree.place.path}' {wanted}"
        if isinstance(tree.value, Variables):
            several = "variables" if len(tree.value.names) > 1 else "variable"
            told = f"Property '{tree.place.path}' has the {several} {tree.value} left in it: {INTERPOLATE}"
        self.faults.add(BoshErrorKind.GENERIC, told, tree.place)

    def refuse_name(self, tree: Tree) -> bool:
        """Refuse a text that the ledger takes for no name; tell whether it was."""
        try:
            check_name(tree.value, field=tree.place.path)
        except Invalid as error:
            self.faults.add(BoshErrorKind.GENERIC, error.message, tree.place)
            return True
        return False

    def refuse_others(self, tree: Tree, known: Sequence[str]) -> None:
        """Refuse keys that nobody reads: a misspelt one would change nothing, silently.

        At the top of a document those that begin with ``x-`` are their author's own, as a place for anchors.
        """
        for key, child in tree.value.items():
            if key not in known and (tree.place.path or not key.startswith(OWN)):
                told = f"Unknown property '{_path(tree, key)}'; known here: {', '.join(known)}"
                self.faults.add(BoshErrorKind.GENERIC, told, child.place)


def read_tree(text: str, document: str) -> Tree:
    """Read a document, or say where it is no YAML, or too much of it. Cost: some 10 µs a value, MOST_VALUES at most."""
    if len(text) > LARGEST:
        raise _broken(f"at most {LARGEST} characters are read", DocumentPlace(document, 1, 1, ""))
    try:
        node = _Composer(text, document).compose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = DocumentPlace(
            document, 1 if mark is None else mark.line + 1, 1 if mark is None else mark.column + 1, ""
        )
        raise _broken(error.problem or error.context or "not YAML", place) from None
    except yaml.YAMLError as error:
        # A ReaderError (a character that YAML forbids) has no mark, so its line is not known.
        raise _broken(str(error).partition("\n")[0] or "not YAML", DocumentPlace(document, 1, 1, "")) from None
    if node is None:
        raise _broken("the document is empty", DocumentPlace(document, 1, 1, ""))
    tree = _Planter(document).plant(node, "", 0)
    if not isinstance(tree.value, dict):
        raise _broken("a mapping is needed", tree.place)
    return tree


class _Composer:
    """Makes nodes of the library's events. Its own composer calls itself for what lies inside, without a limit.

    Where that is libyaml's, a document of brackets alone ends the process: its stack overflows.
    """

    def __init__(self, text: str, document: str) -> None:
        self._loader: Any = _Loader(text)
        self._document = document
        self._anchors: dict[str, yaml.Node] = {}
        self._open: list[yaml.CollectionNode] = []
        self._keys: list[yaml.Node | None] = []
        self._made = 0

    def compose(self) -> yaml.Node | None:
        """Return the one document of the stream; None if there is none. O(values), with no call inside another."""
        loader = self._loader
        loader.get_event()  # the stream's beginning
        if loader.check_event(yaml.StreamEndEvent):
            return None
        begun = loader.get_event()
        root = self._node(loader.get_event())
        while self._open:
            self._take(loader.get_event())
        loader.get_event()  # the document's end
        if not loader.check_event(yaml.StreamEndEvent):
            other = loader.get_event().start_mark
            told = "expected a single document in the stream"
            raise yaml.composer.ComposerError(told, begun.start_mark, "but found another document", other)
        return root

    def _take(self, event: Any) -> None:
        if isinstance(event, yaml.CollectionEndEvent):
            self._open.pop().end_mark = event.end_mark
            self._keys.pop()
            return
        parent, key = self._open[-1], self._keys[-1]
        # Taken before _node runs: a collection puts itself on top of the open ones.
        place = len(self._open) - 1
        node = self._node(event)
        if isinstance(parent, yaml.SequenceNode):
            parent.value.append(node)
        elif key is None:
            self._keys[place] = node
        else:
            self._keys[place] = None
            parent.value.append((key, node))

    def _node(self, event: Any) -> yaml.Node:
        if isinstance(event, yaml.AliasEvent):
            return self._anchored(event)
        if event.anchor in self._anchors:
            first, again = self._anchors[event.anchor].start_mark, event.start_mark
            told = f"found duplicate anchor {event.anchor!r}; first occurrence"
            raise yaml.composer.ComposerError(told, first, "second occurrence", again)
        self._made += 1
        # The planter counts again; without this limit the nodes alone would hold up the server.
        if self._made > MOST_VALUES:
            raise _too_many(_place(self._document, event, ""))
        node = self._scalar(event) if isinstance(event, yaml.ScalarEvent) else self._collection(event)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _anchored(self, event: Any) -> yaml.Node:
        if event.anchor not in self._anchors:
            raise yaml.composer.ComposerError(None, None, "found undefined alias", event.start_mark)
        return self._anchors[event.anchor]

    def _scalar(self, event: Any) -> yaml.Node:
        tag = event.tag
        if tag is None or tag == "!":
            tag = self._loader.resolve(yaml.ScalarNode, event.value, event.implicit)
        return yaml.ScalarNode(tag, event.value, event.start_mark, event.end_mark, style=event.style)

    def _collection(self, event: Any) -> yaml.Node:
        if len(self._open) > DEEPEST:
            raise _broken(TOO_DEEP, _place(self._document, event, ""))
        kind = yaml.SequenceNode if isinstance(event, yaml.SequenceStartEvent) else yaml.MappingNode
        tag = event.tag
        if tag is None or tag == "!":
            tag = self._loader.resolve(kind, None, event.implicit)
        node = kind(tag, [], event.start_mark, None, flow_style=event.flow_style)
        self._open.append(node)
        self._keys.append(None)
        return node


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # libyaml's where it is there
    """Reads scalars as people mean them: what holds colons is text, and never a number to the base of sixty."""


INT, FLOAT, TIME, BOOL, NULL, TEXT = (
    f"tag:yaml.org,2002:{kind}" for kind in ("int", "float", "timestamp", "bool", "null", "str")
)
SIGNS = (MERGE, "tag:yaml.org,2002:value")
"""Where they are no keys, << and = are texts like any other."""

SCALARS = (INT, FLOAT, BOOL, NULL, TEXT)
MAPPING, SEQUENCE = ("tag:yaml.org,2002:map",), ("tag:yaml.org,2002:seq",)
# YAML 1.1 reads 1:30 as a number to the base of sixty, 010 as octal, 2020-01-01 as a date: all are text here.
# The dict and its lists are new, because add_implicit_resolver appends to them and must not change SafeLoader's.
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in (INT, FLOAT, TIME)]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_DIGITS = list("-+0123456789")
# A number of 18 digits fits into 64 bits. A longer one is text: int() refuses thousands of digits.
_Loader.add_implicit_resolver(INT, re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})$"), _DIGITS)
_Loader.add_implicit_resolver(FLOAT, re.compile(r"[-+]?[0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)?$"), _DIGITS)


class _Planter:
    """Turns the library's nodes into trees; anchors may be used, but not to blow a document up."""

    def __init__(self, document: str) -> None:
        self._document = document
        self._planted = 0
        self._scalars = _Loader("")
        self._merged: dict[int, Pairs | None] = {}

    def plant(self, node: yaml.Node, path: str, depth: int) -> Tree:
        place = _place(self._document, node, path)
        self._count(1, place, depth)
        if isinstance(node, yaml.MappingNode):
            pairs = self._pairs(node, path, depth).items()
            found = {key: self.plant(member, f"{path}.{key}" if path else key, depth + 1) for key, member in pairs}
            return Tree(found, place)
        if isinstance(node, yaml.SequenceNode):
            self._refuse_tag(node, SEQUENCE, place)
            members = enumerate(node.value)
            return Tree([self.plant(member, f"{path}[{number}]", depth + 1) for number, member in members], place)
        value = self._scalar(node, place)
        # Looked for in a cheap way first: a document may have 150,000 texts.
        left = VARIABLE.findall(value) if isinstance(value, str) and "((" in value else ()
        return Tree(Variables(left) if left else value, place)

    def _scalar(self, node: yaml.Node, place: DocumentPlace) -> Any:
        if node.tag in SIGNS:
            return node.value
        self._refuse_tag(node, SCALARS, place)
        try:
            value = self._scalars.construct_object(node)
        except (yaml.YAMLError, ValueError, LookupError):
            # A document may tag any text: !!int x raises ValueError, !!bool x KeyError, !!int "" IndexError.
            raise _broken(f"'{node.value[:80]}' is not what its tag says", place) from None
        # Papers are JSON, which has no infinite numbers.
        if isinstance(value, float) and not math.isfinite(value):
            raise _broken(f"the number {node.value[:80]} is too large", place)
        return value

    def _count(self, number: int, place: DocumentPlace, depth: int) -> None:
        # The composer has counted each anchor once; here each use of it counts, and lies as deep as it is used.
        self._planted += number
        if depth > DEEPEST:
            raise _broken(TOO_DEEP, place)
        if self._planted > MOST_VALUES:
            raise _too_many(place)

    def _refuse_tag(self, node: yaml.Node, known: Sequence[str], place: DocumentPlace) -> None:
        if node.tag not in known:
            raise _broken(f"the tag '{node.tag}' is not read", place)

    def _pairs(self, node: yaml.MappingNode, path: str, depth: int) -> Pairs:
        """Return what a mapping says by key: what merge keys (<<) bring in comes first, and may be said anew."""
        place = _place(self._document, node, path)
        self._refuse_tag(node, MAPPING, place)
        # By id, since the nodes live as long as the planter. None marks a mapping that is being read.
        if id(node) in self._merged:
            known = self._merged[id(node)]
            if known is None:
                raise _broken("a merge key (<<) brings a mapping into itself", place)
            return known
        self._merged[id(node)] = None
        brought: Pairs = {}
        own: Pairs = {}
        for named, member in node.value:
            if named.tag == MERGE:
                # Of two merge keys in one mapping the first one wins.
                brought = {**self._brought(member, path, depth + 1), **brought}
                continue
            key = self.plant(named, path, depth + 1)
            if isinstance(key.value, Variables):
                # Keys that are read are known words; elsewhere a variable may be one, as it may be a value.
                key.value = str(named.value)
            if not isinstance(key.value, str):
                raise _broken(f"a key must be text, not {_told(key.value)}", key.place)
            if key.value in own:
                raise _broken(f"the key '{key.value}' is there twice", key.place)
            own[key.value] = member
        found = self._merged[id(node)] = {**brought, **own}
        return found

    def _brought(self, source: yaml.Node, path: str, depth: int) -> Pairs:
        """Return what a merge key brings in: of several mappings the first that says something counts."""
        sources = source.value if isinstance(source, yaml.SequenceNode) else [source]
        found: Pairs = {}
        for each in reversed(sources):
            place = _place(self._document, each, path)
            if not isinstance(each, yaml.MappingNode):
                raise _broken("a merge key (<<) needs a mapping, or a list of mappings", place)
            brought = self._pairs(each, path, depth)
            # A merge copies pairs, so it counts although it plants nothing yet.
            self._count(len(brought), place, depth)
            found = {**found, **brought}
        return found


def _too_many(place: DocumentPlace) -> Rejected:
    return _broken(f"more than {MOST_VALUES} values, with aliases counted each time; at most so many are read", place)


def _place(document: str, node: Any, path: str) -> DocumentPlace:
    return DocumentPlace(document, node.start_mark.line + 1, node.start_mark.column + 1, path)


def _is(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not (kind is int and isinstance(value, bool))


def _path(tree: Tree, key: str) -> str:
    return f"{tree.place.path}.{key}" if tree.place.path else key


def _with_variables(tree: Tree) -> Iterator[Tree]:
    """Find what has variables left in it, in the order written."""
    if isinstance(tree.value, Variables):
        yield tree
    inside = tree.value.values() if isinstance(tree.value, dict) else tree.value if isinstance(tree.value, list) else ()
    for each in inside:
        yield from _with_variables(each)


def _told(value: Any) -> str:
    if value is None:
        return "null"
    return next((name for kind, name in NAMES.items() if _is(value, kind)), None) or shown(value)


def _broken(message: str, place: DocumentPlace) -> Rejected:
    return Rejected([BoshFault(BoshErrorKind.GENERIC, f"The document cannot be read: {message}", place)])
