"""Rendered documents as YAML that every reader takes for the same values (R9, R10)."""

import re
from typing import Any

import yaml

PLAIN = re.compile(r"[A-Za-z/_](?:[A-Za-z0-9./_:-]*[A-Za-z0-9./_-])?|[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+")
"""Texts that need no quotes. ``52:54:00:12:34:56`` is a number to the base of sixty for some, ``1e3`` for others."""
HALF = re.compile("[\ud800-\udfff]")
"""Half of a character, as JSON writes those beyond the first 65,536."""
MOST_REPEATS = 10_000
"""So many times aliases may repeat maps and lists: a few lines of them can stand for more than a machine can hold."""
WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "inf", "nan"})


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    is_plain = PLAIN.fullmatch(text) is not None and text.lower() not in WORDS
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if is_plain else '"')


_Dumper.add_representer(str, _text)


def data_yaml(document: Any) -> str:
    """Write a document with its keys in order."""
    written: str = yaml.dump(document, Dumper=_Dumper, sort_keys=True, width=1000, allow_unicode=True)
    return written


class _Loader(yaml.SafeLoader):
    """Reads scalars as Kubernetes' tools do: what holds colons is text, and a key that is there twice is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value!r} is there twice", key.start_mark)
            seen.add(str(key.value))
        return super().construct_mapping(node, deep)

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> Any:
        """Return a text, with the two halves put together by which JSON writes characters beyond the first 65,536."""
        text = super().construct_scalar(node)
        try:
            return text.encode("utf-16", "surrogatepass").decode("utf-16") if HALF.search(text) else text
        except UnicodeDecodeError:
            raise yaml.constructor.ConstructorError(None, None, "half of a character", node.start_mark) from None


_INT, _FLOAT, _TIME = (f"tag:yaml.org,2002:{kind}" for kind in ("int", "float", "timestamp"))
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in (_INT, _FLOAT, _TIME)]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_SIGNS = list("-+.0123456789")
# Python refuses to read numbers of thousands of digits; such a one stays a text, and is refused where it stands.
_Loader.add_implicit_resolver(_INT, re.compile(r"[-+]?(?:0|[1-9][0-9]{0,40})$"), _SIGNS)
_Loader.add_implicit_resolver(_FLOAT, re.compile(r"[-+]?[0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)?$"), _SIGNS)


def read_documents(text: str) -> list[Any]:
    """Read the documents of a stream of YAML; raise ``yaml.YAMLError`` if it is none. Empty ones are left out."""
    documents = [each for each in yaml.load_all(text, Loader=_Loader) if each is not None]
    _check_repeats(documents)
    return documents


def _check_repeats(documents: list[Any]) -> None:
    """Raise ``yaml.YAMLError`` where aliases repeat too much, or without end."""
    rest, seen, repeats = list(documents), set[int](), 0
    while rest:
        value = rest.pop()
        if not isinstance(value, dict | list):
            continue
        repeats += id(value) in seen
        if repeats > MOST_REPEATS:
            raise yaml.YAMLError("its aliases repeat too much, or have no end")
        seen.add(id(value))
        rest += value.values() if isinstance(value, dict) else value
