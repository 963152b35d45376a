"""Verify and the second checker on mutated certificates: ``python -m tests.fuzz.second_checker``.

A mutation changes one place of a small certificate, and mostly renews the digest. Both programs
have to give the same verdict, differs or not. Two answers of the second checker are none:
that it couldn't check the line where the mutation is (`left`), and that the mutated end of an
enclosure is as right as the one before (`within`: the specification leaves a few doubles open,
where `verify` compares with what this code computes). All else is a disagreement, and printed.

What follows from the same inputs and counts is derived once, which is what `verify` spends its time
on; so inputs are mutated less often than other places.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import json
import math
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from dpverify.certificate.derive import AuditPlan
from dpverify.certificate.schema import Evidence, Inputs
from dpverify.errors import DPVerifyError
from tests.fuzz.mutations import nodes

__all__ = ["KINDS", "Found", "mutated", "run", "verdicts"]

first: Any = import_module("dpverify.certificate.checks")  # whose parts are replaced
second: Any = import_module("dpverify_check.dpverify_check")
VECTORS = Path(__file__).parents[1] / "conformance" / "vectors"

Place = tuple[str | int, ...]
Fields = dict[str, Any]

_UNCHECKED = ("jl-covariance",)
_ENDS = (
    *("lower", "upper", "threshold", "shown", "published", "scale_in_steps"),
    *("epsilon_lower", "error"),
)


def verdicts(fields: Fields, folder: Path) -> tuple[str, str, list[Any]]:
    """What verify says (differs or not), what the second checker says, and its lines."""
    checks = first.check_certificate(fields, folder, replay=False)
    theirs = {check.status for check in checks} & {"differs", "violation"}
    lines = second.check_fields(fields, folder / "sketch.npz")
    return "differs" if theirs else "stands", second.status(lines), lines


def _kept(compute: Callable[..., Any]) -> Callable[..., Any]:
    """A pure function of documents, of which the last results are kept; errors too."""

    @lru_cache(maxsize=256)
    def once(*texts: str) -> tuple[Any, Exception | None]:
        try:
            return compute(*waiting), None
        except (DPVerifyError, ValueError) as error:
            return None, error

    waiting: tuple[Any, ...] = ()

    def answer(*arguments: Any) -> Any:
        nonlocal waiting
        waiting = arguments
        found, error = once(*map(_text, arguments))
        if error is not None:
            raise error
        return found

    return answer


def _text(argument: Any) -> str:
    if isinstance(argument, AuditPlan):
        return argument.inputs.model_dump_json()
    if isinstance(argument, Inputs | Evidence):
        return argument.model_dump_json()
    return ""  # the mechanism of the inputs before it


class _Plans:
    """Stands for `AuditPlan`."""

    of = staticmethod(_kept(AuditPlan.of))


def keep_what_follows() -> None:
    """Derive what follows from the same inputs and counts once in this process."""
    first.build = _kept(first.build)
    first.canonical = _kept(first.canonical)
    first.derive = _kept(first.derive)
    first.AuditPlan = _Plans
    limits = second.noise_limits
    second.noise_limits = lru_cache(lambda *noise: list(limits(*noise)))


# Mutations


def _holder(fields: Any, place: Place) -> Any:
    for key in place[:-1]:
        fields = fields[key]
    return fields


def _at(fields: Any, place: Place) -> Any:
    return _holder(fields, place)[place[-1]]


def _digit(value: Any, rng: random.Random, _: Any) -> Any:
    """Another digit."""
    text = value if isinstance(value, str) else str(value)
    places = [n for n, c in enumerate(text) if c.isdigit()]
    if not places or isinstance(value, bool | dict | list):
        return None  # True is a number to Python
    n = rng.choice(places)
    text = text[:n] + rng.choice("0123456789") + text[n + 1 :]
    return text if isinstance(value, str) else int(text)


def _number(value: Any, rng: random.Random, _: Any) -> Any:
    """Another number in its one form, near or far."""
    if isinstance(value, bool | dict | list):
        return None
    if type(value) is int:
        return max(0, rng.choice([value + 1, value - 1, 2 * value, value // 2, 0]))
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    other = number * rng.choice([0.5, 2.0, 0.999, 1.001, 1 + 1e-6, 1 - 1e-9, 1 + 1e-12])
    if "/" in value or len(value) < 12:
        return f"{other:.9g}"
    return second.decimal_string(other, rng.choice([ROUND_FLOOR, ROUND_CEILING]))


def _neighbour(value: Any, rng: random.Random, _: Any) -> Any:
    """The next double, in its one form."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    if not isinstance(value, str) or len(value) < 12:
        return None
    other = math.nextafter(number, rng.choice([-math.inf, math.inf]))
    return second.decimal_string(other, rng.choice([ROUND_FLOOR, ROUND_CEILING]))


def _words(value: Any, rng: random.Random, _: Any) -> Any:
    """Another text: a letter, a blank, other digits, a hidden character."""
    if not isinstance(value, str):
        return None
    extra = rng.choice(["x", " ", "0", "\u0660", "\u202e", "\x1b", ".0", "é"])
    n = rng.randint(0, len(value))
    return value[:n] + extra + value[n:]


def _type(value: Any, rng: random.Random, _: Any) -> Any:
    """A value of another type."""
    return rng.choice([[], {}, "", 0, True, 1.5, [value], {"lower": value}])


def _sibling(value: Any, rng: random.Random, fields: Any) -> Any:
    """A value that stands elsewhere in the certificate."""
    place = rng.choice(list(nodes(fields)))
    return copy.deepcopy(_at(fields, place))


KINDS: dict[str, Callable[[Any, random.Random, Any], Any]] = {
    "a digit": _digit,
    "a number": _number,
    "a neighbouring double": _neighbour,
    "a text": _words,
    "another type": _type,
    "from elsewhere in it": _sibling,
}


def mutated(
    bases: dict[str, Fields], name: str, kind: str, rng: random.Random
) -> tuple[Fields, Place] | None:
    """A certificate with one change, and where; None where the kind doesn't apply there."""
    text = json.dumps(bases[name])
    fields = json.loads(text)
    place = rng.choice(_places(text))
    if place[0] == "inputs" and rng.random() < 0.97:  # both calibrate anew for each of these
        return None
    holder, value = _holder(fields, place), _at(fields, place)
    match kind:
        case "left out":
            del holder[place[-1]]
        case "added":
            if isinstance(value, list):
                value.append(copy.deepcopy(value[-1]) if value else 0)
            elif isinstance(value, dict):
                value["surprise"] = 0
            else:
                return None
        case "from another certificate":
            other = bases[rng.choice(list(bases))]
            try:
                holder[place[-1]] = copy.deepcopy(_at(other, place))
            except (KeyError, IndexError, TypeError):
                return None
        case _:
            changed = KINDS[kind](value, rng, fields)
            if changed is None:
                return None
            holder[place[-1]] = changed
    if fields == bases[name]:
        return None
    if place[0] != "digest" and rng.random() < 0.95:
        with contextlib.suppress(ValueError, RecursionError):
            fields["digest"] = second.digest_of(fields)
    return fields, place


@lru_cache(maxsize=64)
def _places(text: str) -> list[Place]:
    """All places, but of long lists those in the first four alone."""
    found = list(nodes(json.loads(text)))
    return [p for p in found if not any(isinstance(key, int) and key > 3 for key in p)]


ALL_KINDS = (*KINDS, "left out", "added", "from another certificate", "a forgery")


def forged(fields: Fields, rng: random.Random) -> Fields | None:
    """A whole certificate derived anew from other inputs and the same counts: it is consistent."""
    from dpverify.certificate.checklist import answers

    other = copy.deepcopy(fields)
    inputs = other["inputs"]
    match rng.randint(0, 4):
        case 0:
            inputs["epsilon"] = rng.choice(["0.5", "1", "1.5", "3", "4", "7/3"])
        case 1:
            inputs["delta"] = rng.choice(["0", "0.01", "0.0001", "0.000001", "1/3"])
        case 2:
            inputs["projection_seed"] = rng.randint(0, 50)
        case 3:
            inputs["rows"] = rng.randint(2, 9)
        case 4:
            inputs["domain"]["numbers"] = {"low": "0", "high": rng.choice(["1", "2", "5/2"])}
    try:
        stated = Inputs.model_validate(inputs)
        mechanism = first.build(stated)
        plan = first.AuditPlan.of(stated, mechanism)
        evidence = other["evidence"]
        for recorded, pair in zip(evidence["white_box"], plan.pairs, strict=True):
            recorded["pair"] = pair.name
        counted = Evidence.model_validate(evidence)
        derived = first.derive(plan, counted)
        other["checklist"] = [answer.model_dump() for answer in answers(stated, derived)]
    except (DPVerifyError, ValueError):
        return None
    other["derived"] = derived.model_dump()
    if other["release"] is None or derived.white_box.verdict == "violation":
        return None
    step = mechanism.step()
    other["release"] |= {
        "shape": list(mechanism.shape(stated.rows)),
        "dtype": mechanism.dtype().name,
        "step": None if step is None else step.as_json(),
    }
    other["digest"] = second.digest_of(other)
    return other


# The comparison


class Found:
    """Counts by kind and outcome, and the disagreements."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self.disagreements: list[str] = []

    def table(self) -> Iterator[str]:
        """Lines of counts."""
        outcomes = sorted({outcome for _, outcome in self.counts})
        yield f"{'kind':<26}" + "".join(f"{outcome:>16}" for outcome in (*outcomes, "all"))
        for kind in [*ALL_KINDS, "all"]:
            rows = [
                sum(n for (k, o), n in self.counts.items() if o == outcome and kind in (k, "all"))
                for outcome in outcomes
            ]
            yield f"{kind:<26}" + "".join(f"{count:>16}" for count in (*rows, sum(rows)))


def judge(fields: Fields, place: Place, folder: Path, before: Fields) -> tuple[str, str]:
    """Outcome of one mutation, and what to print if it is a disagreement."""
    theirs, ours, lines = verdicts(fields, folder)
    if theirs == "differs" and ours == "differs":
        return "both differ", ""
    if theirs == "stands" and ours != "differs":
        return "both stand", ""
    where = ".".join(map(str, place))
    if theirs == "differs" and before["inputs"]["mechanism"] in _UNCHECKED:
        return "left", ""
    if theirs == "differs" and ours == "agrees":
        changed = [(at, *pair) for at, pair in _changes(before, fields)]
        if all(at[-1] in _ENDS and _near(one, two) for at, one, two in changed):
            return "within", ""
    wrong = [f"{line.name}: {line.detail}" for line in lines if line.status == "differs"]
    values = f"{_at(before, place)!r} -> {_maybe(fields, place)!r}" if place else ""
    return "disagree", f"{folder.name} {where} {values}: verify {theirs}, second {ours} {wrong}"


def _changes(one: Any, two: Any, at: Place = ()) -> Iterator[tuple[Place, tuple[Any, Any]]]:
    """Leaves that differ, but for the digest."""
    if isinstance(one, dict) and isinstance(two, dict) and one.keys() == two.keys():
        for key in one:
            if (*at, key) != ("digest",):
                yield from _changes(one[key], two[key], (*at, key))
    elif isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        for number, pair in enumerate(zip(one, two, strict=True)):
            yield from _changes(*pair, (*at, number))
    elif one != two:
        yield at, (one, two)


def _maybe(fields: Fields, place: Place) -> Any:
    try:
        return _at(fields, place)
    except (KeyError, IndexError):
        return None


def _near(one: Any, other: Any) -> bool:
    try:
        return abs(float(one) - float(other)) <= 1e-8 * abs(float(one))
    except (TypeError, ValueError):
        return False


def run(count: int, seed: int, names: list[str] | None = None) -> Found:
    """Try so many mutations, as many of each certificate: what both keep of it is of use again."""
    keep_what_follows()
    rng, found = random.Random(seed), Found()
    index = json.loads((VECTORS / "index.json").read_text(encoding="utf-8"))
    bases = {
        name: json.loads((VECTORS / name / "certificate.json").read_text(encoding="utf-8"))
        for name in index["right"]
    }
    names = names or list(bases)
    forgeries: dict[str, Fields] = {}
    while (tried := found.counts.total()) < count:
        name, kind = names[tried * len(names) // count], rng.choice(ALL_KINDS)
        place: Place = ()
        if kind == "a forgery":
            made = forged(bases[name], rng) if rng.random() < 0.02 else forgeries.get(name)
            if made is None:
                continue
            before = forgeries[name] = made
            fields = made
            if rng.random() < 0.9:  # mutated in its turn
                again = mutated({name: made}, name, rng.choice(list(KINDS)), rng)
                if again is None:
                    continue
                fields, place = again
        else:
            before = bases[name]
            changed = mutated(bases, name, kind, rng)
            if changed is None:
                continue
            fields, place = changed
        outcome, said = judge(fields, place, VECTORS / name, before)
        found.counts[kind, outcome] += 1
        if said:
            found.disagreements.append(f"{kind}: {said}")
    return found


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--of", nargs="*", help="names of vectors; all by default")
    chosen = parser.parse_args()
    found = run(chosen.count, chosen.seed, chosen.of)
    for line in found.table():
        print(line)
    for line in found.disagreements:
        print(line[:400])
    return min(len(found.disagreements), 1)


if __name__ == "__main__":
    sys.exit(main())
