"""What a cluster asks an operator: whether it lives, whether it is ready, and its numbers (KP14)."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from aiohttp import web

Readiness = Callable[[], Mapping[str, str]]
"""Return what is not ready, by name, with the reason; nothing if all is."""


class Sample(NamedTuple):
    """A number with its name, what it means, and its labels."""

    name: str
    help: str
    type: str
    value: float
    labels: Mapping[str, str] = {}


Numbers = Callable[[], Iterable[Sample]]


async def serve_probes(host: str, port: int, readiness: Readiness, numbers: Numbers) -> tuple[web.AppRunner, int]:
    """Serve ``/livez``, ``/readyz`` and ``/metrics``; return what stops it, and the port.

    ``/livez`` asks no other server: an API server that is away must not get its operators restarted.
    """

    async def livez(request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(request: web.Request) -> web.Response:
        missing = readiness()
        text = "".join(f"{name}: {reason}\n" for name, reason in sorted(missing.items()))
        return web.Response(status=503 if missing else 200, text=text or "ok\n")

    async def metrics(request: web.Request) -> web.Response:
        return web.Response(body="".join(exposition(numbers())).encode(), content_type="text/plain")

    app = web.Application()
    app.add_routes([web.get("/livez", livez), web.get("/readyz", readyz), web.get("/metrics", metrics)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, host, port).start()
    return runner, int(runner.addresses[0][1])


def exposition(samples: Iterable[Sample]) -> Iterator[str]:
    """Write samples in Prometheus' text format; samples of one name stand together."""
    last = ""
    for sample in samples:
        if sample.name != last:
            last = sample.name
            yield f"# HELP {sample.name} {sample.help}\n# TYPE {sample.name} {sample.type}\n"
        labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in sample.labels.items())
        yield f"{sample.name}{{{labels}}} {sample.value:g}\n" if labels else f"{sample.name} {sample.value:g}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
