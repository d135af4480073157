"""What a cluster asks a process of ours: whether it lives, whether it is ready, and its numbers (KP14)."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from aiohttp import web

from tenure.integrations.kubernetes.runtime.access_review import AccessReview, ReviewOutcome

Readiness = Callable[[], Mapping[str, str]]
"""Return what is not ready, by name, with the reason; nothing if all is."""


class Sample(NamedTuple):
    """A number with its name, what it means, and its labels."""

    name: str
    help: str
    type: str
    value: float
    labels: Mapping[str, str] = {}
    suffix: str = ""
    """Of a histogram: ``_bucket``, ``_sum`` or ``_count``, which stand under one name."""


Numbers = Callable[[], Iterable[Sample]]


async def serve_probes(
    host: str, port: int, readiness: Readiness, numbers: Numbers, review: AccessReview | None = None
) -> tuple[web.AppRunner, int]:
    """Serve ``/livez``, ``/readyz`` and ``/metrics``; return what stops it, and the port.

    ``/livez`` asks no other server: an API server that is away must not get its clients restarted. ``review`` judges
    who may read ``/metrics``; without it everybody may. Probes have no token, so the other two are open.
    """

    async def livez(request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(request: web.Request) -> web.Response:
        missing = readiness()
        text = "".join(f"{name}: {reason}\n" for name, reason in sorted(missing.items()))
        return web.Response(status=503 if missing else 200, text=text or "ok\n")

    async def metrics(request: web.Request) -> web.Response:
        if review is not None:
            outcome = await review.judge(request.headers.get("Authorization", ""), request.path)
            if outcome is not ReviewOutcome.ALLOWED:
                return _refused(outcome)
        return web.Response(body="".join(exposition(numbers())).encode(), content_type="text/plain")

    app = web.Application()
    app.add_routes([web.get("/livez", livez), web.get("/readyz", readyz), web.get("/metrics", metrics)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, host, port).start()
    return runner, int(runner.addresses[0][1])


def _refused(outcome: ReviewOutcome) -> web.Response:
    """Answer a caller who may not read, or of whom that is not known."""
    headers = {"WWW-Authenticate": "Bearer"} if outcome is ReviewOutcome.UNKNOWN else {}
    return web.Response(status=outcome, text=f"{outcome.name.lower()}\n", headers=headers)


def exposition(samples: Iterable[Sample]) -> Iterator[str]:
    """Write samples in Prometheus' text format; samples of one name stand together, wherever they come from."""
    by_name: dict[str, list[Sample]] = {}
    for sample in samples:
        by_name.setdefault(sample.name, []).append(sample)
    for name, together in by_name.items():
        yield f"# HELP {name} {together[0].help}\n# TYPE {name} {together[0].type}\n"
        for sample in together:
            labels = ",".join(f'{label}="{_escaped(value)}"' for label, value in sample.labels.items())
            series = f"{name}{sample.suffix}"
            yield f"{series}{{{labels}}} {_number(sample.value)}\n" if labels else f"{series} {_number(sample.value)}\n"


def _number(value: float) -> str:
    """Write a number with all its digits: counters grow past a million."""
    return str(int(value)) if value == int(value) else repr(value)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
