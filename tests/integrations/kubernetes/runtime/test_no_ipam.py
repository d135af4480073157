"""The runtime knows no IPAM, neither in imports, which contracts forbid, nor in words; ``vmpool`` has it alone."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tenure

PACKAGE = Path(tenure.__file__).parent
RUNTIME = PACKAGE / "integrations" / "kubernetes" / "runtime"
ROOT = Path(__file__).parents[4]

IPAM = re.compile(r"ipam|ip_?pool|ip_?claim|subnet|allocat|holding|ledger|metal3", re.IGNORECASE)
"""Words that a module of the runtime has no use for; an address is also a socket's."""


def test_no_module_of_the_runtime_speaks_of_ipam() -> None:
    texts = {path.name: path.read_text("utf-8") for path in RUNTIME.glob("*.py")}

    assert "api_client.py" in texts
    assert {name: found.group() for name, text in texts.items() if (found := IPAM.search(text))} == {}


def lint(folder: Path, module: str, imports: str) -> subprocess.CompletedProcess[str]:
    """Judge a copy of the package in which a module imports something more."""
    shutil.copytree(PACKAGE, folder / "tenure", ignore=shutil.ignore_patterns("__pycache__"))
    place = folder / "tenure" / "integrations" / f"{module}.py"
    place.parent.mkdir(exist_ok=True)
    for package in place.parent, place.parent.parent:
        (package / "__init__.py").touch()
    place.write_text((place.read_text("utf-8") if place.exists() else "") + f"\nimport {imports}\n", "utf-8")
    command = [str(Path(sys.executable).parent / "lint-imports"), "--config", str(ROOT / ".importlinter"), "--no-cache"]
    surroundings = {"PYTHONPATH": str(folder), "PATH": str(Path(sys.executable).parent)}
    return subprocess.run(command, cwd=folder, env=surroundings, capture_output=True, encoding="utf-8", check=False)


@pytest.mark.parametrize(
    ("module", "imports", "broken"),
    [
        ("vmpool/pools", "tenure.integrations.kubernetes.runtime.informer", False),
        ("vmpool/pools", "tenure.integrations.kubernetes.operator", True),
        ("vmpool/pools", "tenure.integrations.ganeti.machine_model", True),
        ("kubernetes/runtime/informer", "tenure.kernel.errors", True),
    ],
)
def test_contracts_keep_the_runtime_and_its_users_apart_from_the_rest(
    tmp_path: Path, module: str, imports: str, broken: bool
) -> None:
    judged = lint(tmp_path, module, imports)

    assert (judged.returncode != 0) == broken, judged.stdout + judged.stderr
    assert broken == (f"tenure.integrations.{module.replace('/', '.')} -> {imports}" in judged.stdout)
