"""``python -m benchmarks.peers.install``: makes the peers' environments under ``out/peers``.

One environment a requirements file, so that no peer decides what another one gets. What is
installed already is left alone. A peer that can't be installed takes no other with it: it is tried
again by itself, and the installer's last words become its row's remark (`installed`).
"""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

__all__ = ["ENVIRONMENTS", "Peer", "installed", "known", "make", "pip", "requirements"]

HERE = Path(__file__).parent
OUT = HERE.parents[1] / "out" / "peers"
ENVIRONMENTS = {"libraries": "requirements.txt", "jax": "requirements-jax.txt"}

UNPUBLISHED = "not in the Python package index, so not installed: nothing was measured"
"""Of DP-Sniper and dp_auditorium, whose names there would be anyone's."""

Install = Callable[[str, Sequence[str]], str]
"""Installs requirements into the environment of that name; returns why it couldn't, or nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A package in an environment.

    Attributes
    ----------
    name, version : as pinned
    environment : its name in `ENVIRONMENTS`
    missing : why it isn't there, or nothing
    """

    name: str
    version: str
    environment: str
    missing: str = ""

    @property
    def python(self) -> str:
        """The interpreter that can import it."""
        return str(OUT / self.environment / "bin" / "python")


def requirements(text: str) -> list[str]:
    """The pins of a requirements file, without its remarks."""
    lines = (line.split("#")[0].strip() for line in text.splitlines())
    return [line for line in lines if line]


def make(environment: str, wanted: Sequence[str], install: Install) -> list[Peer]:
    """Install all that is wanted together, else each by itself."""
    reason = install(environment, wanted)
    peers = []
    for pin in wanted:
        name, version = pin.split("==")
        missing = install(environment, [pin]) if reason else ""
        peers.append(Peer(name=name, version=version, environment=environment, missing=missing))
    return peers


def known() -> list[Peer]:
    """All peers of the last installation."""
    record = OUT / "installed.json"
    entries = json.loads(record.read_text(encoding="utf-8")) if record.exists() else []
    return [Peer(**entry) for entry in entries]


def installed(name: str) -> Peer:
    """The peer of that name, as the last installation left it."""
    found = next((peer for peer in known() if peer.name == name), None)
    if found is not None and (found.missing or Path(found.python).exists()):
        return found
    missing = "not installed: python -m benchmarks.peers.install"
    return Peer(name=name, version="", environment="", missing=missing)


def pip(folder: Path, wanted: Sequence[str], constraint: Path | None = None) -> str:
    """Install into the environment in this folder; returns why it couldn't, or nothing.

    The environment is made where there is none. What pip already finds there it leaves.
    """
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    limits = ("--constraint", constraint) if constraint else ()
    done = subprocess.run(  # noqa: S603  # pins of this folder, in an environment of our own
        [python, "-m", "pip", "install", "--quiet", "--no-compile", *limits, *wanted],
        capture_output=True,
        text=True,
        check=False,
    )
    said = [line for line in done.stderr.splitlines() if "error" in line.lower()[:60]]
    return "" if done.returncode == 0 else (said or ["pip failed"])[-1].strip()


def _limited(environment: str, wanted: Sequence[str]) -> str:
    return pip(OUT / environment, wanted, HERE / ENVIRONMENTS[environment])


def main() -> None:
    """Make what isn't there, and say which peer is missing and why."""
    peers: list[Peer] = []
    for environment, file in ENVIRONMENTS.items():
        print(f"{environment} …", file=sys.stderr)
        wanted = requirements((HERE / file).read_text(encoding="utf-8"))
        peers += make(environment, wanted, _limited)
    OUT.mkdir(parents=True, exist_ok=True)
    record = json.dumps([asdict(peer) for peer in peers], indent=1)
    (OUT / "installed.json").write_text(record + "\n", encoding="utf-8")
    for peer in peers:
        print(f"{peer.name} {peer.version}: {peer.missing or 'installed'}")


if __name__ == "__main__":
    main()
