"""Signatures of verbs that take their options from a definition, written out for people and tools.

Type checkers check ``**wanted: Unpack[AllocateKeywords]`` keyword by keyword. But ``help``, the documents and whoever
else reads a signature would see ``**wanted`` alone; ``spelled_out`` shows every keyword with its type and its default.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar, get_args

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T", bound=Mapping[str, object])

LAST = ("key", "wait_s")
"""What is said of the call and not of the address stands last, in every verb."""


def spelled_out(definition: type[Any]) -> Callable[[F], F]:
    """Give a verb the signature in which its ``**wanted`` are the fields of a definition, in its order."""

    def with_signature(verb: F) -> F:
        own = inspect.signature(verb)
        parameters = list(own.parameters.values())
        wanted = parameters.pop()
        [keywords] = get_args(wanted.annotation)
        spelled = [
            inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=each.type)
            for each in fields(definition)
            if each.name in keywords.__optional_keys__
        ]
        first = [each for each in parameters if each.name not in LAST]
        last = [each for each in parameters if each.name in LAST]
        verb.__signature__ = own.replace(parameters=[*first, *spelled, *last])  # type: ignore[attr-defined]
        return verb

    return with_signature


def only(keywords: type[T], wanted: T) -> T:
    """Return the keywords that a verb was given; TypeError for one that the verb does not take.

    Python checks the names of parameters, not those of ``**wanted``: without this, ``allocate(pending=True)`` would be
    a ``hold`` that nobody sees.
    """
    if not wanted or (known := keywords.__optional_keys__).issuperset(wanted):  # type: ignore[attr-defined]
        return wanted
    unknown = next(name for name in wanted if name not in known)
    raise TypeError(f"got an unexpected keyword argument {unknown!r}")
