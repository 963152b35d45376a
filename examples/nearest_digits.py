"""Use a release: find the digits nearest to one of them, from the private sketches alone.

Run ``make certify`` first. Nothing here touches the real digits.
"""

from pathlib import Path

import numpy as np

import dpverify as dpv


def main(certificate: Path = Path("out/mnist"), query: int = 0) -> None:
    release = dpv.open_release(certificate)
    rows = release.rows
    others = np.delete(np.arange(len(rows)), query)
    estimates = release.squared_distance(rows[[query]], rows[others])
    nearest = np.argsort(estimates)[:5]
    print(f"digit {query}: estimated squared distance to its nearest neighbours")
    for index in nearest:
        print(f"  digit {others[index]:4d}: {estimates[index]:7.1f}")


if __name__ == "__main__":
    main()
