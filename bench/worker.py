"""A measured process: reads a job, gets ready, waits for the start, works, tells, and waits to be let go.

Each load has an interpreter of its own. Connections stay open until the last line came in, so that the CPU time of
the store's processes can be read before they end.
"""

import asyncio
import resource
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.jobs import Job, Result
from bench.loads import LOADS


def main() -> None:
    """Serve the one job on standard input."""
    asyncio.run(serve(Job.load(sys.stdin.readline())))


async def serve(job: Job) -> None:
    """Do the job, in step with the parent."""
    async with LOADS[job.work](job) as run:
        _say("ready")
        await _hear()
        cpu, start = time.process_time(), time.perf_counter()
        latencies = await run()
        seconds = time.perf_counter() - start
        _say(summary(latencies, seconds, time.process_time() - cpu).dump())
        await _hear()


def summary(latencies: Sequence[float], seconds: float, cpu_s: float) -> Result:
    """Put a run into numbers."""
    if not latencies:
        raise RuntimeError("nothing was measured: the time was too short")
    cuts = statistics.quantiles(latencies, n=100, method="inclusive") if len(latencies) > 1 else [latencies[0]] * 99
    return Result(len(latencies), seconds, cpu_s, cuts[49] * 1000, cuts[98] * 1000, peak_mb())


def peak_mb() -> float:
    """Return the most memory this process ever had.

    The kernel's figure for the program is asked first: the one of ``getrusage`` begins with the parent's memory.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text("ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _say(line: str) -> None:
    print(line, flush=True)


async def _hear() -> None:
    await asyncio.to_thread(sys.stdin.readline)


if __name__ == "__main__":
    main()
