"""One small request for every mechanism that can be certified, by name."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Any

from dpverify.catalogue import family_of
from dpverify.data.adjacency import (
    Adjacency,
    Attribute,
    BitFlip,
    Edge,
    Items,
    Record,
    Row,
)
from dpverify.data.domain import Ball, Box, Domain, Graphs, Sets
from dpverify.family import Request
from dpverify.privacy import Certifiable

BOX = Box(low=Fraction(-1), high=Fraction(2))
BETA = Attribute(beta=Fraction(3, 2))
DELTA = Fraction(1, 1000)


def request(
    p: int = 9,
    domain: Domain = BOX,
    adjacency: Adjacency = BETA,
    delta: Fraction = DELTA,
    rows: int = 5,
    **parameters: Any,
) -> Request:
    return Request(
        rows=rows,
        p=p,
        domain=domain,
        adjacency=adjacency,
        epsilon=Fraction(2),
        delta=delta,
        seed=4,
        parameters=parameters,
    )


CASES: Mapping[str, Request] = {
    "dp-oporp": request(k=4, noise="gaussian"),
    "dp-oporp laplace": request(k=4, noise="laplace", delta=Fraction(0)),
    "dp-oporp records": request(k=4, noise="gaussian", adjacency=Record()),
    "dp-rp-g": request(k=4),
    "dp-rp-g-opt": request(k=4),
    "dp-rp-g-opt-b": request(k=4, noise="gaussian"),
    "dp-rp-l": request(k=4, delta=Fraction(0)),
    "raw-data-g-opt": request(noise="gaussian"),
    "private-projection": request(k=4, projection="uniform", copies=4, sigma="kenthapadi"),
    "private-projection ball": request(
        k=4,
        projection="dks",
        copies=4,
        sigma="analytic",
        domain=Ball(radius=Fraction(2)),
        adjacency=Record(),
    ),
    "dp-oporp sets": request(
        p=30,
        k=4,
        noise="gaussian",
        domain=Sets(min_size=3, max_size=10),
        adjacency=Items(changes=2),
    ),
    "dp-oporp whole sets": request(
        p=30,
        k=4,
        noise="gaussian",
        domain=Sets(min_size=3, max_size=5),
        adjacency=Record(),
    ),
    "sjlt": request(k=4, sparsity=2, construction="graph", independence=0, noise="gaussian"),
    "fjlt": request(k=4, density=Fraction(1, 2), at="output", noise="gaussian"),
    "fjlt input": request(k=4, density=Fraction(1, 2), at="input", noise="gaussian"),
    "randomized-response": request(
        domain=Box(low=Fraction(0), high=Fraction(1)), adjacency=BitFlip(), delta=Fraction(0)
    ),
    "randomized-response records": request(
        domain=Box(low=Fraction(0), high=Fraction(1)), adjacency=Record()
    ),
    "noise-addition": request(),
    "jl-graph-cuts": request(
        p=300,
        rows=300,
        domain=Graphs(),
        adjacency=Edge(weight=Fraction(1)),
        sketch_rows=4,
    ),
    "jl-covariance": request(
        p=3,
        domain=Ball(radius=Fraction(2)),
        adjacency=Row(radius=Fraction(1)),
        sketch_rows=8,
    ),
    "rr-min-hash": request(
        p=40,
        domain=Sets(min_size=6),
        adjacency=Items(changes=1),
        k=8,
        buckets=4,
        reading="over the draw",
    ),
    "rr-min-hash realised": request(
        p=40,
        domain=Sets(min_size=6),
        adjacency=Items(changes=1),
        k=8,
        buckets=2,
        reading="realised",
    ),
    "noisy-min-hash": request(
        p=40,
        domain=Sets(min_size=6),
        adjacency=Items(changes=2),
        k=8,
        buckets=4,
        reading="over the draw",
    ),
    "dp-signrp-rr": request(k=4, least_norm=0, delta=Fraction(0)),
    "dp-signrp-rr-smooth": request(
        k=4, projection="rademacher", ladder="steepest", delta=Fraction(0)
    ),
    "dp-signoporp-rr": request(k=4, repetitions=2, delta=Fraction(0)),
    "dp-signoporp-rr-smooth": request(k=4, repetitions=1, ladder="smooth", delta=Fraction(0)),
}


@cache
def made(case: str) -> Certifiable:
    """The mechanism of a case."""
    return family_of(case.partition(" ")[0]).make(CASES[case])
