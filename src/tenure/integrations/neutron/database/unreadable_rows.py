"""What stands in the database and cannot be read: named by table and subnet, so that one bad row hides no others."""

from collections.abc import Callable
from typing import TypeVar

from tenure.kernel.errors import Conflict, Invalid
from tenure.kernel.names import shown

T = TypeVar("T")


class Unreadable(Conflict):
    """A row says something that nobody could have written."""

    code = "unreadable"

    def __init__(self, table: str, subnet: str, reason: str) -> None:
        super().__init__(f"a row of subnet {subnet} in table {table} cannot be read: {reason}")
        self.table = table
        self.subnet = subnet
        self.reason = reason


def read_column(table: str, subnet: str, column: str, value: str, read: Callable[[str], T]) -> T:
    """Read the text of a column; Unreadable where it makes no sense."""
    try:
        return read(value)
    except (Invalid, ValueError, TypeError) as error:
        raise Unreadable(table, subnet, f"{column} is {shown(value)} ({error})") from error
