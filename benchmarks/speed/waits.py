"""What a user waits for: commands in new processes, here and in an earlier version.

DPVERIFY_BEFORE names a checkout of that version; without it the aims alone are there to compare
with. The commands of a checkout are those of its ``.venv/bin``, as make's are. Both versions take
turns, and of several turns the median counts; where there are several, one more comes first, which
fills the caches of files.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks.speed.table import Row

__all__ = ["HERE", "rows", "trees"]

AREA = "waits"
HERE = Path(__file__).resolve().parents[2]
_START = ("python", "-c", "pass")
_PYTEST = ("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly")
_SUITE = "def test_nothing():\n    assert True\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """A command of a checkout.

    Attributes
    ----------
    what : it is that is waited for
    command : a program of `.venv/bin`, and what it is given; `{out}` is a folder
    aim : seconds at most, on two cores; None where there is no aim
    beside : a command of which the time is taken off
    least : a command of what can't be saved, for which the aim is withdrawn
    turns : how often it is run
    """

    what: str
    command: Sequence[str]
    aim: float | None = None
    beside: Sequence[str] = ()
    least: Sequence[str] = ()
    turns: int = 9


WAITS = (
    Wait(
        what="`import dpverify`, less an interpreter that imports nothing",
        command=("python", "-c", "import dpverify"),
        aim=0.06,
        beside=_START,
        turns=21,
    ),
    Wait(
        what="`dpv.Gaussian(sigma=4)`, likewise",
        command=("python", "-c", "import dpverify as dpv; dpv.Gaussian(sigma=4)"),
        aim=0.15,
        beside=_START,
        least=("python", "-c", "import numpy, flint"),
        turns=21,
    ),
    Wait(
        what="`dpverify account gaussian -p sigma=4 --delta 1e-6`",
        command=("dpverify", "account", "gaussian", "-p", "sigma=4", "--delta", "1e-6"),
        aim=0.3,
        turns=21,
    ),
    Wait(
        what="`dpverify certify examples/mnist.toml`",
        command=("dpverify", "certify", "examples/mnist.toml", "--out", "{out}/mnist"),
        aim=12,
        turns=3,
    ),
    Wait(
        what="`dpverify verify` of its certificate",
        command=("dpverify", "verify", "{out}/mnist/certificate.json"),
        aim=10,
        turns=3,
    ),
    Wait(
        what="`dpv.open_release` of it",
        command=("python", "-c", "import dpverify as dpv; dpv.open_release('{out}/mnist')"),
    ),
    Wait(
        what="`dpverify audit planted --profile dev`",
        command=("dpverify", "audit", "planted", "--profile", "dev", "--quiet"),
        aim=120,
        turns=1,
    ),
    Wait(what="`dpverify claims`", command=("dpverify", "claims"), aim=10, turns=3),
    Wait(
        what="the pytest plugin, in a suite that doesn't use it",
        command=(*_PYTEST, "{out}/suite"),
        aim=0.05,
        beside=(*_PYTEST, "-p", "no:dpverify", "{out}/suite"),
        turns=15,
    ),
    Wait(what="`mkdocs build`", command=("mkdocs", "build", "-q", "-d", "{out}/site"), turns=1),
    Wait(
        what="the tests of the command line's snapshots",
        command=(*_PYTEST, "tests/cli/test_snapshots.py"),
        turns=1,
    ),
)

_DRAW = """
import cProfile, json, pstats
from statistics import median
from time import process_time
from dpverify.auditing.outputs.samples import one_side
from dpverify.data.adjacency import Attribute
from dpverify.data.domain import Box
from dpverify_mechanisms.linear.sketch import LinearSketch
sketch = LinearSketch.dp_oporp(p=784, k=256, seed=2023, epsilon=5, delta=1e-6,
                               domain=Box(0, 1), adjacency=Attribute(1))
pair = sketch.worst_pairs()[0]
def draws(chunk):
    start = process_time()
    one_side(sketch, pair, 0, 500, (7, "waits", chunk), 60.0)
    return (process_time() - start) / 500 * 1e6
draws(0)
taken = median(map(draws, range(1, 40)))
profile = cProfile.Profile()
profile.runcall(lambda: [draws(chunk) for chunk in range(40, 48)])
found = pstats.Stats(profile)
shares = sorted(((own / found.total_tt, name, file.rpartition("/")[2])
                 for (file, _, name), (_, _, own, _, _) in found.stats.items()), reverse=True)
print(json.dumps([taken, shares[:5]]))
"""


@dataclass(frozen=True, slots=True)
class Taken:
    """Seconds by the clock, and of the processor in all processes."""

    clock: float
    processor: float


def trees() -> Mapping[str, Path]:
    """Our checkout and, where DPVERIFY_BEFORE names one, that of an earlier version."""
    found = {"dpverify": HERE}
    if earlier := os.environ.get("DPVERIFY_BEFORE"):
        found[_version(Path(earlier))] = Path(earlier).resolve()
    return found


def rows() -> Iterator[Row]:
    """Each wait beside its aim, and beside the earlier version."""
    checkouts = trees()
    with tempfile.TemporaryDirectory() as folder:
        for wait in WAITS:
            found = _measured(wait, checkouts, Path(folder))
            ours = found.pop("dpverify")
            peers = {} if wait.aim is None else {"aim": Taken(wait.aim, wait.aim)}
            withdrawn = ""
            if wait.least:
                least = replace(wait, command=wait.least)
                alone = _measured(least, {"dpverify": HERE}, Path(folder))["dpverify"]
                withdrawn = f"; aim withdrawn: `{wait.least[-1]}` alone takes {alone.clock:.3g} s"
            for peer, theirs in (peers | found).items():
                told = f" and {theirs.processor:.3g}" if peer != "aim" else ""
                kept = peer == "aim" and not withdrawn
                yield Row(
                    area=AREA,
                    work=wait.what,
                    unit="s",
                    ours=ours.clock,
                    peer=peer,
                    theirs=theirs.clock,
                    aim=1 if kept else None,
                    note=f"of the processor, in all processes: {ours.processor:.3g}{told} s"
                    + (withdrawn if peer == "aim" else ""),
                )
    drawn = {name: json.loads(_answer(tree, _DRAW)) for name, tree in checkouts.items()}
    ours, profile = drawn.pop("dpverify")
    for peer, (theirs, other) in drawn.items():
        yield Row(
            area=AREA,
            work="a draw of the example's audit, 784 numbers to 256",
            unit="processor µs",
            ours=ours,
            peer=peer,
            theirs=theirs,
            note=f"where it goes, by cProfile: {_told(profile)}; before: {_told(other)}",
        )


def _told(shares: Sequence[tuple[float, str, str]]) -> str:
    places = (f"{name} ({file})" if file != "~" else name for _, name, file in shares)
    return ", ".join(
        f"{share:.0%} `{place}`" for (share, _, _), place in zip(shares, places, strict=True)
    )


def _version(tree: Path) -> str:
    command = ["git", "-C", str(tree), "log", "-1", "--format=%as, %h"]
    done = subprocess.run(command, capture_output=True, check=True, text=True)  # noqa: S603
    return f"dpverify of {done.stdout.strip()}"


def _measured(wait: Wait, trees: Mapping[str, Path], folder: Path) -> dict[str, Taken]:
    """What it takes in each checkout."""
    found: dict[str, list[Taken]] = {name: [] for name in trees}
    for _ in range(wait.turns + (wait.turns > 1)):
        for number, (name, tree) in enumerate(trees.items()):
            out = folder / str(number)
            (out / "suite").mkdir(parents=True, exist_ok=True)
            (out / "suite" / "test_nothing.py").write_text(_SUITE)
            taken = _run(tree, out, wait.command)
            if wait.beside:
                other = _run(tree, out, wait.beside)
                taken = Taken(taken.clock - other.clock, taken.processor - other.processor)
            found[name].append(taken)
    counted = {name: runs[-wait.turns :] for name, runs in found.items()}
    return {
        name: Taken(median(run.clock for run in runs), median(run.processor for run in runs))
        for name, runs in counted.items()
    }


def _run(tree: Path, out: Path, command: Sequence[str]) -> Taken:
    """One run of a command in a checkout, which may end with 1: that something was found."""
    program, *given = (part.replace("{out}", str(out)) for part in command)
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
    done = subprocess.run(  # noqa: S603  # a command of the table above
        [str(tree / ".venv/bin" / program), *given], cwd=tree, capture_output=True, check=False
    )
    clock, after = perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} in {tree}: {done.stderr.decode()[-2000:]}")
    return Taken(clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def _answer(tree: Path, code: str) -> str:
    done = subprocess.run(  # noqa: S603  # code of this file
        [str(tree / ".venv/bin/python"), "-c", code],
        cwd=tree,
        capture_output=True,
        check=True,
        text=True,
    )
    return done.stdout
