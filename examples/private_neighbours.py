"""A scikit-learn pipeline whose first step is a private release: neighbours among sketched digits.

Each image is released once, training and test images alike, with one pixel of one image protected.
What the classifier sees is the release; its accuracy stands beside that on the images themselves,
and beside that of always naming the most common digit.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

import dpverify as dpv
from dpverify.sklearn import PrivateSketch

PIXELS = dpv.Box(0, 16)  # from how the images were made, and not from looking at them


def main() -> None:
    images, digits = load_digits(return_X_y=True)
    parts = train_test_split(images, digits, test_size=0.3, random_state=0)
    train, test, train_digits, test_digits = parts
    plain = KNeighborsClassifier(10).fit(train, train_digits).score(test, test_digits)
    print(f"the images themselves: {plain:.2f} right")
    for epsilon in (2, 5, 10):
        sketch = PrivateSketch(k=32, epsilon=epsilon, domain=PIXELS)
        model = make_pipeline(sketch, KNeighborsClassifier(10)).fit(train, train_digits)
        score = model.score(test, test_digits)
        spent = model[0].spent().epsilon_at(0)
        print(f"sketches, spent epsilon = {float(spent):g} a pixel: {score:.2f} right")
    common = np.bincount(train_digits).argmax()
    print(f"the most common digit: {np.mean(test_digits == common):.2f} right")


if __name__ == "__main__":
    main()
