"""Lower bounds on ε by jax_privacy's auditing, run as ``scores FOLDER SIGNIFICANCE [DELTA]``.

Every file of FOLDER holds two arrays of scalar scores, ``high`` of the side where they are larger
and ``low``. The bound is `CanaryScoreAuditor.epsilon_clopper_pearson` with its default,
Bonferroni's correction over all thresholds. Prints ``{file's stem: [bound, seconds]}``, the seconds
of processor time being the median of 5; with a positive DELTA also ``{stem/name: bound}`` of the
other methods.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import numpy as np
from jax_privacy.auditing import (
    CanaryScoreAuditor,
    MultiSplit,
    Split,
)

if __name__ == "__main__":
    folder, significance, *deltas = sys.argv[1:]
    level, delta = float(significance), float(deltas[0]) if deltas else 0.0
    answers: dict[str, Any] = {}
    for file in sorted(Path(folder).glob("*.npz")):
        scores = np.load(file)
        taken = []
        for _ in range(5):
            start = process_time()
            auditor = CanaryScoreAuditor(scores["high"], scores["low"])
            bound = float(auditor.epsilon_clopper_pearson(level, delta))
            taken.append(process_time() - start)
        answers[file.stem] = [bound, median(taken)]
        if delta:
            by_pearson = partial(auditor.epsilon_clopper_pearson, level, delta)
            methods = {
                "split": partial(by_pearson, threshold_strategy=Split(seed=0)),
                "splits": partial(
                    by_pearson, threshold_strategy=MultiSplit(num_samples=20, seed=0)
                ),
                "one run": partial(auditor.epsilon_one_run, level, delta),
                "model": partial(auditor.epsilon_from_gdp, level, delta),
            }
            answers |= {f"{file.stem}/{name}": float(made()) for name, made in methods.items()}
    print(json.dumps(answers))
