"""How options are written: an ident, a colon, pieces between commas, and the words in them.

``k=v`` sets, a bare ``k`` says true, ``no_k`` says false, ``-k`` unsets; a backslash takes the next character as it is.
Nothing here knows the keys of an option; addresses, blocks, ranges and names look the same in all of them.
"""

import ipaddress
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tenure.kernel.addressing.addresses import format_address, parse_address
from tenure.kernel.addressing.ranges import AddressRange, Cidr, parse_cidr, parse_range
from tenure.kernel.errors import Invalid
from tenure.kernel.names import MAX_NAME, shown

MAX_OPTION = 4096

KEYWORDS = ("pool", "none", "auto")
VERBS = ("add", "remove", "modify")

_VERB_AT_THE_END = re.compile(r"(.*):(remove|modify)(?:,(.*))?")
_BRACKETED = re.compile(r"\[([^]]*)\](.*)")
_UNSET = re.compile(r"-(?![0-9])(.+)", re.DOTALL)
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_LIKE_AN_ADDRESS = re.compile(r"[0-9]+(?:\.[0-9]+){3}|[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*")
_HEAD = re.compile(r"([^-/+%]*)([-/+%]?)(.*)", re.DOTALL)
_FIELDS = {"-N": "nic_parameters"}
_TRUTH = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}


@dataclass(frozen=True, slots=True)
class OptionPiece:
    """One piece of an option: its text without escapes, the key, and the value: text, true, false or unset (none)."""

    option: str
    text: str
    key: str
    value: str | bool | None

    @property
    def empties(self) -> bool:
        """Tell whether it takes something away: ``-k``, or ``k=none`` in any letter case."""
        return self.value is None or (isinstance(self.value, str) and self.value.lower() == "none")

    def refusal(self, reason: str) -> Invalid:
        """Make the error that names the option, the piece and the reason."""
        field = _FIELDS.get(self.option, self.option.lstrip("-").replace("-", "_"))
        return Invalid(f"{self.option}: {shown(self.text)}: {reason}", field=field)

    def said(self, example: str) -> str:
        """Return the value, which must be text and not empty."""
        if not isinstance(self.value, str) or not self.value:
            raise self.refusal(f"{self.key[:40]} needs a value, as in {example}")
        return self.value


def whole(option: str, text: str, *, at_most: int = MAX_OPTION) -> OptionPiece:
    """Take an option's text as one piece; text that no option has is refused."""
    piece = OptionPiece(option, text, text, True)
    if not text.strip():
        raise piece.refusal("nothing is written here")
    if len(text) > at_most:
        raise piece.refusal(f"an option has at most {at_most} characters, not {len(text)}")
    if not text.isprintable():
        raise piece.refusal("holds a control character")
    return piece


def split_verb(piece: OptionPiece) -> tuple[str, str, str | None]:
    """Split into ident, verb and what follows its comma; the verb is found from the right, for idents hold colons."""
    bracketed = _BRACKETED.fullmatch(piece.text)
    if piece.text.startswith("[") and bracketed is None:
        raise piece.refusal("the bracket is not closed")
    # In brackets an ident is over at the bracket, whatever colons and verbs it holds.
    match = _VERB_AT_THE_END.fullmatch(bracketed[2] if bracketed else piece.text)
    if match is None or (bracketed and match[1]):
        raise piece.refusal("no verb; write add:…, IDENT:remove or IDENT:modify,KEY=VALUE")
    ident = bracketed[1] if bracketed else match[1]
    if not ident:
        raise piece.refusal(f"say what to {match[2]}: IDENT:{match[2]}")
    if match[2] == "remove" and match[3] is not None:
        raise piece.refusal("nothing may follow remove")
    return ident, match[2], match[3]


def lex(option: str, text: str | None) -> dict[str, OptionPiece]:
    """Read the pieces between commas, by key; no text has no pieces."""
    found: dict[str, OptionPiece] = {}
    for part in split_commas(option, text) if text else ():
        piece = _piece(option, part)
        if piece.key in found:
            raise piece.refusal(f"{shown(piece.key)} is given twice")
        found[piece.key] = piece
    return found


def split_commas(option: str, text: str) -> Iterator[str]:
    """Yield the parts between commas that no backslash precedes, without the backslashes."""
    part, letters = "", iter(text)
    for letter in letters:
        if letter == ",":
            yield part
            part = ""
        elif letter == "\\":
            part += next(letters, "") or _dangling(option, text)
        else:
            part += letter
    yield part


def refuse_unknown(pieces: Iterable[OptionPiece], known: Iterable[str], hint: str = "") -> None:
    """Refuse the first piece whose key is not known."""
    keys = tuple(known)
    for piece in pieces:
        if piece.key not in keys:
            raise piece.refusal(f"unknown key {shown(piece.key)}; known are {', '.join(keys)}{hint and '; ' + hint}")


def read_truth(piece: OptionPiece) -> bool:
    """Read yes or no in any of the usual words; what is unset is off."""
    if not isinstance(piece.value, str):
        return piece.value is True
    truth = _TRUTH.get(piece.value.lower())
    if truth is None:
        raise piece.refusal("neither true nor false; write true, false, yes, no, on, off, 1 or 0")
    return truth


def read_literal(text: str, piece: OptionPiece) -> str:
    """Read one address, and write it as everybody does."""
    try:
        return format_address(parse_address(text))
    except Invalid:
        pass
    # The text is refused in any case: the checks from here on only find the best words for it.
    if "%" in text:
        raise piece.refusal("an address with a zone means something on one machine only")
    if like_an_address(text) and ("/" in text or "-" in text):
        raise piece.refusal("one IP address is needed here, not a block or a range")
    raise piece.refusal("not an IP address such as 192.0.2.1 or 2001:db8::1")


def read_block(text: str, piece: OptionPiece) -> tuple[Cidr, str | None]:
    """Read a block of addresses, and a warning if it was written with host bits."""
    if "/" not in text:
        raise piece.refusal("no prefix length; a block is written as address/length")
    try:
        block = parse_cidr(ipaddress.ip_network(text, strict=False))
    except (ValueError, Invalid):
        raise piece.refusal("not a block of addresses such as 192.0.2.0/24 or 2001:db8::/64") from None
    head = parse_address(text.partition("/")[0])
    return block, None if head == block.first else f"{piece.option}: {text} has host bits, taken as {block}"


def read_range(text: str, piece: OptionPiece) -> AddressRange:
    """Read one address, ``first-last`` or a block; start and size have no form in a command."""
    if "+" in text or " " in text:
        raise piece.refusal("a range is written first-last, without white space or '+'")
    if "/" in text:
        block, warning = read_block(text, piece)
        if warning:
            raise piece.refusal(f"the block has host bits; the one that it lies in is {block}")
        return block.range
    # Each end by itself first: read_literal has the best words for a wrong address.
    for end in text.split("-", 1):
        read_literal(end, piece)
    try:
        return parse_range(text)
    except Invalid as error:
        raise piece.refusal(error.message.removeprefix("range: ")) from None


def read_reference(text: str, piece: OptionPiece) -> str:
    """Read what stands for something that exists: a block in its canonical text, a uuid, or a name."""
    inner = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if "/" in inner and like_an_address(inner):
        return str(read_block(inner, piece)[0])
    fault = reference_fault(inner)
    if fault:
        raise piece.refusal(f"{shown(inner)} names nothing: {fault}")
    return normal_uuid(inner) or inner


def read_name(piece: OptionPiece) -> str:
    """Read a new name."""
    name = piece.said("name=web")
    fault = name_fault(name)
    if fault:
        raise piece.refusal(fault)
    return name


def name_fault(text: str) -> str | None:
    """Say why a text cannot be a new name."""
    if any(letter.isspace() for letter in text):
        return "a name holds no white space"
    if text.lower() in KEYWORDS + VERBS:
        return f"{text.lower()!r} is a word of the options, not a name"
    if _UUID.fullmatch(text):
        return "a uuid is not a name"
    return reference_fault(text)


def reference_fault(text: str) -> str | None:
    """Say why a text cannot be the name of anything: other doors give names with fewer rules than this one."""
    if not text:
        return "a name must not be empty"
    if len(text) > MAX_NAME:
        return f"a name has at most {MAX_NAME} characters, not {len(text)}"
    if not text.isprintable() or text != text.strip():
        return "a name holds no control characters, and no white space at its ends"
    if like_an_address(text):
        return "an IP address, a range or a block is not a name"
    wrong = next((letter for letter in text if letter in ",=:"), None)
    return f"a name holds no {wrong!r}" if wrong else None


def like_an_address(text: str) -> bool:
    """Tell whether a text is meant as an address, a range or a block, be it right or wrong."""
    match = _HEAD.fullmatch(text)
    if match is None or not _LIKE_AN_ADDRESS.fullmatch(match[1]):
        return False
    return match[2] != "-" or not match[3] or bool(_LIKE_AN_ADDRESS.fullmatch(match[3]))


def normal_uuid(text: str) -> str | None:
    """Return a uuid in lower case, if the text is one."""
    return text.lower() if _UUID.fullmatch(text) else None


def _piece(option: str, text: str) -> OptionPiece:
    key, equals, value = text.partition("=")
    piece = OptionPiece(option, text, key, value if equals else True)
    if not key:
        raise piece.refusal("no key before '='" if equals else "an empty piece: a comma too many")
    if equals:
        return piece
    if text.startswith("no_") and text != "no_":
        return OptionPiece(option, text, text.removeprefix("no_"), False)
    unset = _UNSET.fullmatch(text)
    return OptionPiece(option, text, unset[1], None) if unset else piece


def _dangling(option: str, text: str) -> str:
    raise OptionPiece(option, text, text, True).refusal("the backslash at the end escapes nothing")
