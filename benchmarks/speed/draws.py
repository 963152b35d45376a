"""A draw of the white-box audit of every example, here and in an earlier version.

Each configuration of ``examples/mechanisms`` becomes a mechanism, and chunks of draws of its first
pair are released and scored as an audit does it. DPVERIFY_BEFORE names a checkout of the earlier
version, as for `benchmarks.speed.waits`; its process and ours take turns, with BLAS on one thread
as in an audit's workers. Beside that stands what no audit of the same draws can save: opening their
streams of words, the words, and the exactly rounded noise that is made of them, in one call for all
draws of a chunk.
"""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from math import prod
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any
from unittest.mock import patch

from benchmarks.speed.table import Row, timed
from benchmarks.speed.waits import HERE, trees
from dpverify.auditing.attacks.white_box import CHUNK, _chunk
from dpverify.auditing.outputs.samples import over_the_draw
from dpverify.certificate.named import named_mechanism
from dpverify.data.loading import load_source
from dpverify.sampling._rounded_noise import RoundedNoise
from dpverify.sampling.words import ReplayableWords
from dpverify_mechanisms.baselines.geometric_noise import GeometricNoise

__all__ = ["rows"]

AREA = "draws"
AIM = 0.25
TURNS = 9
_NOISES: tuple[Any, ...] = (RoundedNoise, GeometricNoise)
_LEFT = {
    "dp-signrp-rr": "each matrix that is drawn is searched for its largest sum and entries",
    "jl-covariance": "with the product by the Cholesky factor more than four fifths of the draw",
    "noise-addition": "the numbers of a draw are copied twice before they are scored",
    "randomized-response": "the rest is what a separate call costs in Python, for 784 bits",
}
"""What keeps an example from the aim, beside its words and noise, where these aren't enough."""
_SERVED = """
import json, sys
from functools import cache
from inspect import signature
from time import process_time
from dpverify.auditing.attacks.white_box import CHUNK, _chunk
from dpverify.auditing.outputs.samples import over_the_draw
from dpverify.certificate.named import named_mechanism
@cache
def made(name, given):
    mechanism = named_mechanism(name, dict(given))
    return mechanism, mechanism.worst_pairs()[0], *one, CHUNK, over_the_draw(mechanism)
one = [0] if "side" in signature(_chunk).parameters else []  # else it is of both sides
for line in sys.stdin:
    name, given, turn = json.loads(line)
    task = made(name, tuple(given.items()))
    start = process_time()
    scores = _chunk(*task, (7, "white-box", 0, 0, turn), 60.0)
    taken = process_time() - start
    draws, first = (CHUNK, scores) if one else (2 * CHUNK, scores[0])
    print(json.dumps([taken / draws * 1e6, f"{first.sum():.9g}"]), flush=True)
"""
"""Draws a chunk for each line, in a version that doesn't have this file."""


def rows() -> Iterator[Row]:
    """A draw of each example, beside the earlier version and beside its words and noise."""
    with ExitStack() as stack:
        serving = {name: stack.enter_context(_served(tree)) for name, tree in trees().items()}
        for path in sorted((HERE / "examples" / "mechanisms").glob("*.toml")):
            name, given = asked(path)
            drawn: dict[str, list[tuple[float, str]]] = {peer: [] for peer in serving}
            for turn in range(TURNS + 1):
                for peer, draw in serving.items():
                    drawn[peer].append(draw((name, given, turn)))
            costs = {peer: median(cost for cost, _ in found[1:]) for peer, found in drawn.items()}
            ours, (least, what) = costs.pop("dpverify"), irreducible(name, given)
            row = partial(_row, name)
            for peer, theirs in costs.items():
                alike = [score for _, score in drawn[peer]] == [s for _, s in drawn["dpverify"]]
                note = "the same scores" if alike else "other scores"
                withdrawn = least > AIM * theirs or name in _LEFT
                if withdrawn:
                    note += (
                        f"; aim of {AIM} withdrawn: words and noise alone are {least / theirs:.3g}"
                    )
                    note += f", and {_LEFT[name]}" if name in _LEFT else ""
                yield row(ours, peer, theirs, aim=None if withdrawn else AIM, note=note)
            yield row(ours, "its words and noise alone", least, note=what)


def _row(name: str, ours: float, peer: str, theirs: float, **said: Any) -> Row:
    return Row(
        area=AREA, work=name, unit="processor µs", ours=ours, peer=peer, theirs=theirs, **said
    )


def asked(path: Path) -> tuple[str, dict[str, str]]:
    """A configuration's mechanism, and what `named_mechanism` takes for it."""
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    records = load_source(document["data"]["source"])
    given = dict(zip(("rows", "attributes"), records.shape, strict=True))
    given["seed"] = document.get("projection", {}).get("seed", 0)
    for what, section in (("domain", "data"), ("adjacency", "privacy")):
        for key, value in document[section][what].items():
            given[what if key == "kind" else f"{what}.{key}"] = value
    for key in ("epsilon", "delta"):
        given[key] = document["privacy"][key]
    given |= document["mechanism"]
    name = given.pop("name")
    return name, {key: str(value) for key, value in given.items()}


def irreducible(name: str, given: Mapping[str, str]) -> tuple[float, str]:
    """Processor µs a draw that words and noise take by themselves, and what they are."""
    mechanism = named_mechanism(name, given)
    pair, anew = mechanism.worst_pairs()[0], over_the_draw(mechanism)
    met: Counter[Any] = Counter()

    def counted(kind: Any, method: str, size: Callable[..., tuple[Any, int]]) -> Any:
        original = getattr(kind, method)

        def called(self: Any, *given: Any, **named: Any) -> Any:
            what, count = size(self, *given)
            met[what] += count
            return original(self, *given, **named)

        return patch.object(kind, method, called)

    with ExitStack() as stack:
        for kind in _NOISES:
            stack.enter_context(counted(kind, "sample", lambda noise, shape: (noise, prod(shape))))
        for method in ("words", "made"):
            taken = counted(ReplayableWords, method, lambda _, count, *__: ("words", count))
            stack.enter_context(taken)
        opened = counted(ReplayableWords, "__init__", lambda *_: ("streams", 1))
        stack.enter_context(opened)
        _chunk(mechanism, pair, CHUNK, anew, (7, "white-box", 0, 0, 0), 60.0)
    words, streams = met.pop("words"), met.pop("streams")
    others = words - sum(met.values())

    def alone() -> None:
        for number in range(streams):
            stream = ReplayableWords(number, "white-box")
        for noise, count in met.items():
            noise.sample((count,), rng=stream)
        stream.words(others)

    (seconds,) = timed(alone, clock=process_time)
    draws = 2 * CHUNK  # of both sides
    noise = "".join(f", {count / draws:,.0f} of them rounded to noise" for count in met.values())
    what = f"{words / draws:,.0f} words{noise}, {streams / draws:.3g} streams a draw"
    return seconds / draws * 1e6, what


@contextmanager
def _served(tree: Path) -> Iterator[Callable[[Any], tuple[float, str]]]:
    """Chunks of draws by the process of a checkout."""
    process = subprocess.Popen(  # noqa: S603  # code of this file
        [str(tree / ".venv/bin/python"), "-c", _SERVED],
        cwd=tree,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    given, answers = process.stdin, process.stdout
    assert given is not None
    assert answers is not None

    def draw(task: Any) -> tuple[float, str]:
        given.write(json.dumps(task) + "\n")
        given.flush()
        cost, scores = json.loads(answers.readline())
        return cost, scores

    try:
        yield draw
    finally:
        process.kill()
        process.wait()
        given.close()
        answers.close()
