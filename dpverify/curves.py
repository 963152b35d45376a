"""Privacy curves by name: ``dpv.curves`` is this module, with all that have one.

What every user meets first, Gaussian and Laplace noise for instance, is at the front door as well.
"""

from __future__ import annotations

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.accounting.curves.discrete_gaussian import DiscreteGaussian
from dpverify.accounting.curves.discrete_laplace import DiscreteLaplace
from dpverify.accounting.curves.gaussian import Gaussian
from dpverify.accounting.curves.laplace import Laplace
from dpverify.accounting.curves.matrix_mechanism import matrix_mechanism
from dpverify.accounting.curves.partition_selection import (
    PartitionSelection,
    gaussian_threshold,
    laplace_threshold,
)
from dpverify.accounting.curves.randomized_response import RandomizedResponse
from dpverify.accounting.curves.rank_one import RankOneNormal
from dpverify.accounting.curves.rank_two import RankTwoNormal
from dpverify.accounting.curves.selection import (
    BoundedRange,
    PureSelection,
    exponential_mechanism,
    noisy_max,
    permute_and_flip,
    sparse_vector,
)
from dpverify.accounting.curves.shuffled import Shuffled
from dpverify.accounting.curves.staircase import Staircase
from dpverify.accounting.curves.truncated_laplace import TruncatedLaplace

__all__ = [
    "ApproxDP",
    "BoundedRange",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Gaussian",
    "Laplace",
    "PartitionSelection",
    "PureSelection",
    "RandomizedResponse",
    "RankOneNormal",
    "RankTwoNormal",
    "Shuffled",
    "Staircase",
    "TruncatedLaplace",
    "exponential_mechanism",
    "gaussian_threshold",
    "laplace_threshold",
    "matrix_mechanism",
    "noisy_max",
    "permute_and_flip",
    "sparse_vector",
]
