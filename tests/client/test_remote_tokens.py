"""Tokens, asked of a server: what is secret of them is in no path."""

from typing import Any

import pytest

import tenure
from tenure.client.remote_tokens import revoke_token
from tenure.client.transport import Transport

ID, SECRET = "0123456789abcdef", "fedcba9876543210" * 4


@pytest.mark.parametrize(
    ("ident", "path"),
    [
        (f"tnr_{ID}_{SECRET}", f"/tokens/{ID}:revoke"),
        (f" tnr_{ID}_{SECRET[:-3]}", f"/tokens/{ID}:revoke"),
        (ID, f"/tokens/{ID}:revoke"),
        ("tnr_deploy", "/tokens/tnr_deploy:revoke"),
    ],
    ids=["text", "part of a text", "id", "name"],
)
async def test_a_token_is_revoked_by_its_id_or_name_and_never_by_its_secret(
    monkeypatch: pytest.MonkeyPatch, ident: str, path: str
) -> None:
    asked: list[str] = []

    async def ask(_: Transport, method: str, where: str, kind: Any, **more: Any) -> None:
        asked.append(where)

    async with await tenure.open_async("http://127.0.0.1:1") as ledger:
        monkeypatch.setattr(Transport, "ask", ask)
        await revoke_token(ledger, ident)

    assert asked == [path]
