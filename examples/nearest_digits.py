"""Use a release: find the digits nearest to one of them, from the private sketches alone.

Run ``make certify`` first. Nothing here touches the real digits.
"""

from pathlib import Path

import numpy as np

from dpverify.certificate.open_release import open_release


def main(certificate: Path = Path("out/mnist/certificate.json"), query: int = 0) -> None:
    mechanism, rows = open_release(certificate)
    distance = mechanism.estimators()[0]
    others = np.delete(np.arange(len(rows)), query)
    estimates = distance.estimate(rows[[query]], rows[others])
    nearest = np.argsort(estimates)[:5]
    print(f"digit {query}: estimated {distance.name} to its nearest neighbours")
    for index in nearest:
        print(f"  digit {others[index]:4d}: {estimates[index]:7.1f}")


if __name__ == "__main__":
    main()
