"""The pytest plugin, on tests of a third party."""

from __future__ import annotations

import re

import pytest
import scipy.sparse  # noqa: F401  # what a run within this one loads is forgotten, and loads once alone

pytest_plugins = ["pytester"]

HEADER = """
from fractions import Fraction
import numpy as np
import pytest
from dpverify.data.adjacency import Attribute

UNIT = Attribute(beta=Fraction(1))
ONE = {"adjacency": UNIT, "of": "record", "attributes": 1}

def laplace(record, rng):
    return record + rng.laplace(scale=1.0, size=record.shape)

def halved(record, rng):
    return record + rng.laplace(scale=0.5, size=record.shape)
"""
ALONE = ("-p", "no:randomly", "-p", "no:cacheprovider")


def ran(pytester: pytest.Pytester, body: str, *options: str) -> pytest.RunResult:
    pytester.makepyfile(test_mine=HEADER + body)
    return pytester.runpytest_inprocess(*ALONE, *options)


def test_a_correct_laplace_passes(pytester: pytest.Pytester) -> None:
    result = ran(
        pytester,
        """
def test_mine(dp_audit):
    report = dp_audit(laplace, **ONE, epsilon=1, draws=100)
    assert {f.audit for f in report.findings} >= {"black-box", "sequential", "grey-box"}
""",
    )
    result.assert_outcomes(passed=1)


def test_one_with_its_scale_halved_fails_with_the_text(pytester: pytest.Pytester) -> None:
    result = ran(
        pytester,
        """
def test_mine(dp_audit):
    dp_audit(halved, **ONE, epsilon=1, kinds=["black-box"])
""",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "halved: violation, at level 0.001",
            "  claim: epsilon 1 at delta 0",
            "  refuted by",
            "    black-box  some outputs are too frequent *",
            "  epsilon is at least 1.*, by black-box",
            "  pair 'up from zero':",
            "    record    [[][[]0.[]]]",
            "    neighbour [[][[]1.[]]]",
            "    black-box, at level 0.001:",
            "*of 2000 on the *",
            '  replay: pytest "test_mine.py::test_mine" --dp-profile=dev',
        ],
    )


def test_the_marker_holds_the_claim(pytester: pytest.Pytester) -> None:
    result = ran(
        pytester,
        """
pytestmark = pytest.mark.dp_audit(epsilon=1, **ONE, kinds=["black-box"], draws=200)

def test_wrong(dp_audit):
    dp_audit(halved)

def test_the_call_comes_first(dp_audit):
    dp_audit(halved, epsilon=2)

@pytest.mark.dp_audit(epsilon=2, delta=Fraction(1, 10**6), **ONE, draws=200)
def test_nearest_marker(dp_audit):
    assert dp_audit(halved, kinds=["black-box"]).claim[1] == Fraction(1, 10**6)
""",
        "--strict-markers",
    )
    result.assert_outcomes(passed=2, failed=1)


def test_markers_of_all_places_hold_together(pytester: pytest.Pytester) -> None:
    result = ran(
        pytester,
        """
pytestmark = pytest.mark.dp_audit(draws=77, kinds=["black-box"])

@pytest.mark.dp_audit(epsilon=1, **ONE)
class TestClaim:
    def test_its(self, dp_audit):
        report = dp_audit(laplace)
        assert report.claim == (1, 0)
        assert "of 77 on" in report.findings[0].statement

    @pytest.mark.dp_audit(delta=Fraction(1, 10))
    @pytest.mark.parametrize("claimed", [1, pytest.param(2, marks=pytest.mark.dp_audit(epsilon=2))])
    def test_nearest(self, dp_audit, claimed):
        assert dp_audit(laplace).claim == (claimed, Fraction(1, 10))

@pytest.mark.dp_audit(epsilon=1, **ONE)
@pytest.mark.dp_audit(epsilon=2, **ONE)
def test_two(dp_audit):
    dp_audit(laplace)
""",
    )
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["a test takes one marker dp_audit. *"])


def test_a_marked_test_that_never_audits_is_an_error(pytester: pytest.Pytester) -> None:
    result = ran(
        pytester,
        """
@pytest.mark.dp_audit(epsilon=1, **ONE)
def test_forgets(dp_audit):
    pass

@pytest.mark.dp_audit(epsilon=1, **ONE)
def test_has_not_even_the_fixture():
    pass

@pytest.mark.dp_audit(epsilon=1, **ONE)
def test_skips():
    pytest.skip("there is nothing to audit")

def test_has_no_marker(dp_audit):
    pass
""",
    )
    result.assert_outcomes(passed=3, errors=2, skipped=1)
    result.stdout.no_fnmatch_line("*not torn down*")
    result.stdout.fnmatch_lines(["*test_forgets is marked dp_audit but never audits*"])


def test_a_bug_on_purpose_is_expected(pytester: pytest.Pytester) -> None:
    result = ran(
        pytester,
        """
pytestmark = pytest.mark.dp_audit(epsilon=1, **ONE, kinds=["black-box"], draws=200)

def test_found(dp_audit):
    assert dp_audit(halved, expect="violation").violations

def test_not_found(dp_audit):
    dp_audit(laplace, expect="violation")
""",
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["expected violation, found no_violation_found", "laplace: no violation found*"]
    )


def test_what_can_not_be_drawn_from_fails(pytester: pytest.Pytester) -> None:
    result = ran(
        pytester,
        """
def lost(record, rng):
    raise KeyError("lost")

def test_mine(dp_audit):
    dp_audit(lost, **ONE, epsilon=1, draws=100)
""",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["lost: inconclusive*", "  could not be audited: lost raised KeyError*'up from zero'*"]
    )


def test_a_mechanism_has_its_own_claim(pytester: pytest.Pytester) -> None:
    result = ran(
        pytester,
        """
from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.auditing.targets.functions import adapt

MINE = adapt(laplace, **ONE, claim=ApproxDP(epsilon=Fraction(1)))

def test_mine(dp_audit):
    dp_audit(MINE, draws=100)

def test_twice_claimed(dp_audit):
    dp_audit(MINE, epsilon=2, adjacency=UNIT)

def test_unclaimed(dp_audit):
    dp_audit(laplace, epsilon=2)
""",
    )
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(
        ["epsilon, adjacency=given must be left out *", "adjacency=missing must be given*"]
    )


MISTAKES = {
    "dp_audit(laplace)": "adjacency and epsilon=missing must be given for what isn*",
    "dp_audit(laplace, adjacency=UNIT, epsilon=1)": 'of=missing must be declared*of="record"*',
    "dp_audit(laplace, adjacency=UNIT, epsilon=1, of='rows')": "of=rows must be record or dataset*",
    "dp_audit(laplace, epsilon=1, adjacency=UNIT, of='record')": "*its number of attributes*",
    "dp_audit(laplace, epsilon='one', **ONE)": "epsilon=one must be*",
    "dp_audit(laplace, epsilon=1, **ONE, draws=3)": "dp_audit: draws=3 must be*",
    "dp_audit(laplace, epsilon=1, **ONE, alpha='1')": "dp_audit: alpha=1 must be*",
    "dp_audit(laplace, epsilon=1, **ONE, kinds=['black box'])": "*Did you mean black-box?",
    "dp_audit(laplace, epsilon=1, **ONE, kinds=['white-box'])": "kinds=white-box must be *",
    "dp_audit(laplace, epsilon=1, **ONE, pairs=[7])": "pair=7 must be a Pair*",
    "dp_audit(laplace, epsilon=1, **ONE, pairs=['1\\n2'])": "pair=a str must be a Pair*",
    "dp_audit(laplace, epsilon=1, **ONE, expect='violaton')": "expect=violaton must be *violation?",
    "dp_audit(laplace, epsilonn=1, **ONE)": "dp_audit doesn't take epsilonn. Did you mean epsilon?",
    "dp_audit(laplace, epsilon=1, **ONE, pairs=[])": "pairs=* must be at least one*",
    "dp_audit(laplace, epsilon=1, **ONE | {'adjacency': Record()})": "domain=None must*",
    "dp_audit(MINE, attributes=2)": "attributes=given must be left out for a mechanism*",
    "dp_audit(type(MINE))": "mechanism=<class*>* must be an object with*",
}


def test_a_mistake_in_the_arguments_is_one_sentence(pytester: pytest.Pytester) -> None:
    tests = [f"def test_{number}(dp_audit):\n    {call}\n" for number, call in enumerate(MISTAKES)]
    body = """
from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.data.adjacency import Record
from dpverify.auditing.targets.functions import adapt

MINE = adapt(laplace, **ONE, claim=ApproxDP(epsilon=Fraction(1)))

@pytest.mark.dp_audit(sigma=3)
def test_marker(dp_audit):
    dp_audit(laplace)

"""
    result = ran(pytester, body + "\n".join(tests))
    result.assert_outcomes(failed=len(MISTAKES) + 1)
    result.stdout.no_fnmatch_line("*Error*")
    shown = result.stdout.str().split("FAILURES")[1].split("short test summary")[0].splitlines()
    assert len(shown) <= 2 * (len(MISTAKES) + 1) + 2
    result.stdout.fnmatch_lines(
        [
            "the marker dp_audit doesn't take sigma. *",
            *(f"{says}*" for says in MISTAKES.values()),
        ]
    )


def test_profiles(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    body = """
def test_mine(dp_audit):
    report = dp_audit(laplace, **ONE, epsilon=1, draws=DRAWS)
    print("level", report.alpha, [finding.audit for finding in report.findings])
"""
    result = ran(pytester, body.replace("DRAWS", "60"), "-s", "--dp-profile=ci")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*level 0.0001*"])
    # In doubles, not even the correct one is private.
    monkeypatch.setenv("DPVERIFY_PROFILE", "nightly")
    result = ran(pytester, body.replace("DRAWS", "800"))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["    precision, at level *"])
    monkeypatch.setenv("DPVERIFY_PROFILE", "fast")
    result = ran(pytester, body)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*DPVERIFY_PROFILE: profile=fast is unknown. Known: dev, ci, nightly*"]
    )


SEVERAL = "".join(
    f"""
def test_{number}(dp_audit):
    dp_audit(halved, **ONE, epsilon=1, kinds=["black-box"], draws=500, brief=False)
"""
    for number in range(4)
)


def counts(result: pytest.RunResult) -> list[str]:
    return sorted(re.findall(r"\d+ of 500 on the \w+, \d+ of 500", result.stdout.str()))


@pytest.mark.nightly
def test_the_same_in_any_order_and_on_workers(pytester: pytest.Pytester) -> None:
    alone = ran(pytester, SEVERAL)
    alone.assert_outcomes(failed=4)
    assert len(set(counts(alone))) == 4  # every test has a seed of its own
    backwards = pytester.runpytest_inprocess(
        *ALONE, *(f"test_mine.py::test_{number}" for number in (3, 1, 0, 2))
    )
    assert counts(backwards) == counts(alone)
    spread = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-n2")
    spread.assert_outcomes(failed=4)
    assert counts(spread) == counts(alone)


def test_the_plugin_costs_a_run_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
import sys

def test_light():
    assert "dpverify.testing.plugin" in sys.modules
    assert not {"numpy", "scipy", "flint"} & sys.modules.keys()
"""
    )
    pytester.runpytest_subprocess(*ALONE).assert_outcomes(passed=1)


def test_it_goes_with_hypothesis(pytester: pytest.Pytester) -> None:
    """No health check fails, and an example that fails is found again by its own draws."""
    pytester.makepyfile(
        """
        import dpverify as dpv
        import pytest
        from dpverify.testing import strategies
        from hypothesis import given, settings, strategies as st

        PEOPLE = dpv.Table({"age": dpv.Integers(0, 120)}, rows=(0, 4))
        pairs = strategies.neighbours(dpv.AddRemove(), PEOPLE)
        few = settings(max_examples=5, deadline=None, derandomize=True, database=None)

        def total(cap):
            return lambda rows, rng: sum(min(row["age"], cap) for row in rows) + rng.laplace()

        @few
        @given(pair=pairs)
        @pytest.mark.dp_audit(epsilon=1, adjacency=dpv.AddRemove(), domain=PEOPLE, draws=50)
        def test_right(dp_audit, pair):
            dp_audit(total(1), pairs=[pair], kinds=["black-box"])

        @few
        @given(cap=st.sampled_from([100]))
        @pytest.mark.dp_audit(epsilon=1, adjacency=dpv.AddRemove(), domain=PEOPLE, draws=50)
        def test_wrong(dp_audit, cap):
            pair = dpv.Pair(name="mine", record=[], neighbour=[{"age": 120}])
            dp_audit(total(cap), pairs=[pair], kinds=["black-box"])
        """
    )
    result = pytester.runpytest("-p", "no:randomly", "-p", "no:xdist")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*refutes the claim*"])
    result.stdout.no_fnmatch_line("*Flaky*")
    result.stdout.fnmatch_lines(['*one row more: {"age": 120}*'])


def test_a_test_that_is_run_again_draws_the_same(pytester: pytest.Pytester) -> None:
    """As where another plugin runs once more what failed."""
    pytester.makeconftest(
        """
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    for _ in range(2):
        runtestprotocol(item, nextitem=nextitem, log=False)
    return True
"""
    )
    ran(
        pytester,
        """
from pathlib import Path

drawn = []

def seen(record, rng):
    drawn.append(laplace(record, rng).sum())
    return drawn[-1]

def test_mine(dp_audit):
    dp_audit(seen, **ONE, epsilon=1, draws=20, kinds=["black-box"])
    with Path("drawn").open("a") as file:
        file.write(f"{drawn[-1]}\\n")
""",
    )
    first, second = (pytester.path / "drawn").read_text().split()
    assert first == second
