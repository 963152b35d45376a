"""Labels of releases: what they raised or returned, and how many random words they took."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpverify.auditing.config import AuditConfig
from dpverify.auditing.finding import CheckEvidence, Finding
from dpverify.auditing.outputs.foreign import display_name, foreign_code
from dpverify.auditing.outputs.samples import releaser
from dpverify.auditing.outputs.values import Value, kept, value_of
from dpverify.errors import PASSING, DrawError
from dpverify.privacy import Mechanism, Pair
from dpverify.sampling.words import ReplayableWords

__all__ = ["LABELS", "Runs", "Trial", "content", "send"]

LABELS = {
    "behaviour": "what is raised, or the shape or type of the output,",
    "output": "the output itself",
    "words": "the number of random words asked for, which shows in the running time",
}
"""Names of the labels of a release, and what each is; the last one doesn't leave with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """Labels of every release, in order, by the name of the label."""

    labels: dict[str, list[bytes]] = field(default_factory=lambda: {name: [] for name in LABELS})

    @classmethod
    def of(cls, outputs: NDArray[Any], words: Sequence[int]) -> Runs:
        """Of outputs as `sampled` gives them, and the words that they took, where that is known."""
        if outputs.dtype == object:
            seen = [_told(value_of(output)) for output in outputs]
        else:
            seen = [(f"{outputs.dtype} {outputs.shape[1:]}", content(each)) for each in outputs]
        runs = cls()
        for (behaviour, value), taken in zip(seen, words or [0] * len(seen), strict=True):
            runs.note(behaviour, value, taken)
        return runs

    def note(self, behaviour: str, value: bytes, words: int) -> None:
        """One more release: what it did, what it gave, and how many words it took."""
        self.labels["behaviour"].append(behaviour.encode())
        self.labels["output"].append(behaviour.encode() + b"\0" + value)
        self.labels["words"].append(str(words).encode())

    @property
    def failure(self) -> str:
        """The exception, if all releases raised; else empty."""
        behaviours = self.labels["behaviour"]
        raised = all(behaviour.startswith(b"raised") for behaviour in behaviours)
        return f"every release {behaviours[0].decode()}" if raised else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One mechanism under the settings of one audit.

    Attributes
    ----------
    mechanism : audited through its `release`
    config : its level is that of one finding
    """

    mechanism: Mechanism
    config: AuditConfig

    def runs(self, pair: Pair, side: int, *case: int | str) -> Runs:
        """Release the pair's record (side 0) or neighbour (1) so many times.

        Parameters
        ----------
        pair : neighbours
        side : 0 or 1
        case : what the randomness is drawn for

        Raises
        ------
        DrawError
            If a release is late.
        """
        return self.in_turn(pair, [side] * self.config.draws, *case)

    def in_turn(self, pair: Pair, sides: Sequence[int], *case: int | str) -> Runs:
        """Release one side after the other, each from a stream of its own; otherwise as `runs`."""
        runs = Runs()
        releases = [self._releasing(pair, side, runs, *case, side) for side in (0, 1)]

        def draw() -> None:
            for side in sides:
                releases[side]()

        whose = sides[0] if len(set(sides)) == 1 else None
        seen, limit = runs.labels["words"], self.config.time_limit
        foreign_code(draw, self.mechanism, pair, whose, seen, limit)
        return runs

    def sides(self, pair: Pair) -> tuple[Runs, Runs]:
        """Releases of record and neighbour in turn, each two of them in an order that is drawn.

        What a mechanism keeps from one release to the next (a budget that ends, a count) falls on
        both sides alike then, and isn't taken for a dependence on the data.
        """
        both, name = (Runs(), Runs()), f"pair {pair.name}"
        releases = [self._releasing(pair, side, both[side], name, side) for side in (0, 1)]
        order = (
            ReplayableWords(self.config.seed, "determinism", name, "order").words(self.config.draws)
            % 2
        )

        def draw() -> None:
            for first in order.tolist():
                releases[first]()
                releases[1 - first]()

        foreign_code(
            draw, self.mechanism, pair, None, both[0].labels["words"], self.config.time_limit
        )
        return both

    def _releasing(self, pair: Pair, side: int, runs: Runs, *case: int | str) -> Callable[[], None]:
        """Make one release at a call, and note its labels."""
        rng = ReplayableWords(self.config.seed, "determinism", *case)
        records = pair.neighbour if side else pair.record
        released_once = releaser(self.mechanism, records, self.config.draws, rng)

        def release() -> None:
            before = rng.taken
            try:
                released: Any = released_once()
                output = kept(released)
                if isinstance(output, Value):
                    behaviour, value = _told(output)
                else:
                    array = np.asarray(output)
                    behaviour = f"{type(released).__name__} {array.dtype} {array.shape}"
                    value = content(array)
            except (DrawError, *PASSING):  # no output: it couldn't be drawn from
                raise
            except BaseException as error:
                behaviour = f"raised {type(error).__name__}"
                value = b""  # the text is for the owner, and may well name a value
            runs.note(behaviour, value, rng.taken - before)

        return release

    def unable(self, pair: Pair, name: str, reason: str, *, failed: bool = False) -> Finding:
        """The finding of a check that couldn't be made; `failed` if the mechanism is to blame."""
        return Finding(
            audit="determinism",
            verdict="inconclusive",
            statement=f"{display_name(self.mechanism)}, {name}: not compared, for {reason}",
            pair=pair,
            evidence=CheckEvidence(check=name),
            failed=failed,
        )


def _told(value: Value) -> tuple[str, bytes]:
    """What a release did, and what it gave, by the value that was read of it."""
    if value.raised:  # its text is for the owner, and may well name a value
        return value.structure.replace("raises", "raised", 1), b""
    return value.structure, repr(value.leaves).encode()


def send(trial: Trial, pair: Pair, name: str, number: int, sender: Connection) -> None:
    """Release in a new process, the neighbour in the third; send the labels, or why none."""
    try:
        sender.send(trial.runs(pair, int(number == 2), name, number))
    except DrawError as error:
        sender.send(error)


def content(output: NDArray[Any]) -> bytes:
    """All that an output says, as bytes that are equal for equal outputs."""
    if output.dtype != object:
        return output.tobytes()
    return repr([value_of(kept(part)).leaves for part in output.flat]).encode()
