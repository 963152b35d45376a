"""Lower bounds on ε by jax_privacy's auditing, run as ``scores FOLDER SIGNIFICANCE``.

Every file of FOLDER holds two arrays of scalar scores, ``high`` of the side where they are larger
and ``low``. The bound is `CanaryScoreAuditor.epsilon_clopper_pearson` with its default,
Bonferroni's correction over all thresholds. Prints ``{file's stem: [bound, seconds]}``, the seconds
of processor time being the median of 5.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np
from jax_privacy.auditing import CanaryScoreAuditor  # type: ignore[import-not-found]

if __name__ == "__main__":
    folder, significance = sys.argv[1:]
    answers = {}
    for file in sorted(Path(folder).glob("*.npz")):
        scores = np.load(file)
        taken = []
        for _ in range(5):
            start = process_time()
            auditor = CanaryScoreAuditor(scores["high"], scores["low"])
            bound = float(auditor.epsilon_clopper_pearson(float(significance)))
            taken.append(process_time() - start)
        answers[file.stem] = [bound, median(taken)]
    print(json.dumps(answers))
