"""The sample configuration is what oslo's generator writes now."""

import os
import subprocess
import sysconfig
from pathlib import Path

SAMPLE = Path(__file__).parents[3] / "docs" / "reference" / "neutron.conf.sample"


def test_the_sample_is_what_the_generator_writes() -> None:
    generator = Path(sysconfig.get_path("scripts")) / "oslo-config-generator"
    command = [str(generator), "--namespace", "tenure.neutron"]

    done = subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PYTHONUTF8": "1"})

    assert done.stdout.decode("utf-8") == SAMPLE.read_text("utf-8")
