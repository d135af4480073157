"""``tenure waiting``: the claims that stand in line for an address."""

from tenure.doors.cli.framework.click_base import noun
from tenure.doors.cli.framework.shared_options import network_argument, network_choice, owner_argument, slot_option
from tenure.doors.cli.output.json_documents import waiting_document
from tenure.doors.cli.output.print_answer import answer, table
from tenure.doors.cli.session import Session, pass_session

COLUMNS = {
    "PLACE": "place",
    "NETWORK": "network",
    "OWNER": "owner",
    "SLOT": "slot",
    "POOL": "pool",
    "SUBNET": "subnet",
    "SINCE": "since",
    "UNTIL": "until",
}


@noun("waiting")
def waiting() -> None:
    """List the claims that wait for an address, and withdraw them.

    For example:
      tenure waiting list
    """


@waiting.command("list")
@network_choice
@pass_session
def list_waiting(session: Session, network: str | None) -> None:
    """List the claims that wait, in order of arrival.

    For example:
      tenure waiting list net1
    """
    claims = session.run(lambda ledger: ledger.waiting(network))
    table(session, [waiting_document(claim) for claim in claims], COLUMNS, nothing="nobody waits")


@waiting.command("withdraw")
@network_argument
@owner_argument
@slot_option
@pass_session
def withdraw(session: Session, network: str, owner: str, slot: str) -> None:
    """Take an owner's claim out of the line.

    For example:
      tenure waiting withdraw net1 instance/web-8
    """
    done = session.run(lambda ledger: ledger.withdraw(network, owner=owner, slot=slot))
    text = f"{owner} no longer waits in {network}" if done else f"{owner} does not wait in {network}"
    answer(session, {"withdrawn": done}, text)
