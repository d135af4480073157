"""The least that a server can do for a POST: read JSON, answer JSON, on the same uvicorn as Tenure's own."""

import argparse
from typing import Any

import msgspec
import uvicorn

HEAD = [(b"content-type", b"application/json")]
encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(dict[str, str]).decode


async def hello(scope: Any, receive: Any, send: Any) -> None:
    """Greet whoever the body names."""
    if scope["type"] != "http":
        return
    message = await receive()
    body = encode({"hello": decode(message["body"])["owner"]})
    head = [*HEAD, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": body})


def main() -> None:
    """Serve on a port of the caller's choice."""
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    port = parser.parse_args().port
    uvicorn.run(
        hello, host="127.0.0.1", port=port, loop="uvloop", http="httptools", access_log=False, log_level="error",
        lifespan="off",
    )  # fmt: skip


if __name__ == "__main__":
    main()
