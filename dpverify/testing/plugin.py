"""The pytest plugin: a third party audits its own mechanism in five lines.

    @pytest.mark.dp_audit(epsilon=1, adjacency=Attribute(beta=Fraction(1)))
    def test_my_mechanism(dp_audit):
        dp_audit(my_function, of="record", attributes=1)

The seed comes from the test's node id (and from `seed`, where the project's table sets one), so a
test draws the same whatever runs beside it, in which order and in which process. The audit stays in
the test's process, which a test's own functions never need to leave. A marker on a test that never
audits is an error: its name promises a check.

What is heavy is imported when a test first audits, because pytest loads this in every run.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, get_args

import pytest

from dpverify.auditing.settings import (
    DEFAULTS,
    PROFILES,
    VARIABLE,
    Setting,
    Source,
    checked,
    settle,
)
from dpverify.errors import ConfigurationError, DPVerifyError, did_you_mean, require_known

if TYPE_CHECKING:
    from dpverify.auditing.finding import Verdict
    from dpverify.auditing.report import Report

__all__ = ["Auditor", "dp_audit"]


# Where nobody chooses a profile, that of those who develop.
_DEFAULTS = {**DEFAULTS, "alpha": None, "draws": None, "profile": "dev", "without": None}
_AUDITED = pytest.StashKey[int]()
_ITEM = pytest.StashKey[pytest.Item]()
_PASSED = pytest.StashKey[bool]()
_SETTINGS = pytest.StashKey[dict[str, Setting]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--dp-profile``."""
    parser.getgroup("dpverify").addoption(
        "--dp-profile",
        choices=tuple(PROFILES),
        default=None,
        help=f"How hard privacy audits try (default: ${VARIABLE}, the project's table, else dev).",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Announce the marker, and read the settings: a mistake in them ends the run here."""
    config.addinivalue_line(
        "markers",
        "dp_audit(epsilon, delta, adjacency, …): the claim that dp_audit's calls in this test "
        "audit; a test that never audits is an error",
    )
    given = Source("--dp-profile", {"profile": config.getoption("--dp-profile")})
    try:
        config.stash[_SETTINGS] = settle(given, folder=config.rootpath, defaults=_DEFAULTS)
    except ConfigurationError as error:
        raise pytest.UsageError(str(error)) from None


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Note which test runs: the fixture is one for all, so that it goes with Hypothesis.

    One that is run again, as other plugins do with what failed, draws what it drew before.
    """
    item.config.stash[_ITEM] = item
    item.stash[_AUDITED] = 0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, Any, Any]:
    """Note whether the test itself passed."""
    report: Any = yield
    if report.when == "call":
        item.stash[_PASSED] = report.passed
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Refuse a marker on a test that passed without an audit, once its fixtures are torn down."""
    yield
    marked = item.get_closest_marker("dp_audit") is not None
    if marked and item.stash.get(_PASSED, False) and not item.stash.get(_AUDITED, 0):
        pytest.fail(
            f"{item.nodeid} is marked dp_audit but never audits: call the fixture dp_audit in "
            "it, or remove the marker.",
            pytrace=False,
        )


_WORDS = (
    "epsilon",
    "delta",
    "adjacency",
    "domain",
    "of",
    "attributes",
    "rows",
    "many",
    "features",
    "pairs",
    "search",
    "kinds",
    "draws",
    "alpha",
    "time_limit",
    "brief",
)


@dataclass(frozen=True, slots=True)
class Auditor:
    """What the fixture `dp_audit` gives: call it with a mechanism or a function."""

    config: pytest.Config

    def __call__(
        self, subject: Any, *, expect: Verdict = "no_violation_found", **words: Any
    ) -> Report:
        """Audit, and fail the test unless the verdict is the one that is expected.

        Parameters
        ----------
        subject : mechanism or callable
            As for `dpverify.audit`.
        expect : str
            "violation" for a mechanism that is broken on purpose, which shows that the audit of the
            right one can fail.
        **words
            Of `dpverify.audit`: epsilon, delta, adjacency, domain, of, attributes, rows, many,
            features, pairs, search, kinds, draws, alpha, time_limit and brief. By default the
            marker's, then the settings' (`dpverify.auditing.settings`).

        Returns
        -------
        Report
            With the findings.
        """
        item = self.config.stash[_ITEM]
        item.stash[_AUDITED] = number = item.stash.get(_AUDITED, 0) + 1
        if _generated():
            number = 1  # the same example gives the same draws, in whatever order it comes
        marked = _marked(item)
        for called, given in (("the marker dp_audit", marked), ("dp_audit", words)):
            for name in given.keys() - set(_WORDS):
                _refuse(f"{called} doesn't take {name}. {did_you_mean(name, _WORDS)}")
        marked |= {name: value for name, value in words.items() if value is not None}
        settings = {n: s.value for n, s in self.config.stash[_SETTINGS].items()}
        try:
            _check_expected(expect)
            report = _audited(
                subject,
                marked,
                settings,
                seed=_seed(item.nodeid, number, settings["seed"]),
                replay=f'pytest "{item.nodeid}" --dp-profile={settings["profile"]}',
            )
        except DPVerifyError as error:
            if error.exit_code != 2:  # not the caller's to mend: the whole traceback helps
                raise
            raise pytest.fail.Exception(str(error), pytrace=False) from None
        if report.verdict != expect:
            expected = f"expected {expect}, found {report.verdict}\n"
            message = f"{expected if expect != 'no_violation_found' else ''}{report}"
            pytest.fail(message, pytrace=False)
        return report


@pytest.fixture(scope="session")
def dp_audit(pytestconfig: pytest.Config) -> Callable[..., Report]:
    """Audit a mechanism or a function, and fail the test on a violation; see `Auditor`."""
    return Auditor(pytestconfig)


def _marked(item: pytest.Item) -> dict[str, Any]:
    """What markers say, of a module, a class, the test and its parameters: the nearest one counts.

    Two that stand over one test would be two claims, of which one alone would be audited.
    """
    own = getattr(getattr(item, "function", None), "pytestmark", ())
    if sum(mark.name == "dp_audit" for mark in own) > 1:
        _refuse("a test takes one marker dp_audit. Of another claim, write another test.")
    nearest = getattr(getattr(item, "callspec", None), "marks", ())
    found: dict[str, Any] = {}
    for mark in (*reversed(list(item.iter_markers("dp_audit"))), *nearest):
        if mark.name == "dp_audit":
            if mark.args:
                _refuse(f"the marker dp_audit takes only {', '.join(_WORDS)}, by name.")
            found |= mark.kwargs
    return found


def _generated() -> bool:
    """Whether Hypothesis runs the test, with many examples."""
    hypothesis = sys.modules.get("hypothesis")
    return hypothesis is not None and bool(hypothesis.currently_in_test_context())


def _audited(
    subject: Any, words: dict[str, Any], settings: dict[str, Any], *, seed: int, replay: str
) -> Report:
    from dpverify.auditing.audit import audit

    chosen = {
        name: checked("dp_audit", name, words[name]) if name in words else settings[name]
        for name in ("alpha", "draws", "kinds", "time_limit")
    }
    return audit(
        subject,
        **words | chosen,
        without=settings["without"],
        seed=seed,
        workers=1,
        replay=replay,
    )


def _check_expected(verdict: Any) -> None:
    from dpverify.auditing.finding import Verdict

    require_known("expect", verdict, get_args(Verdict))


def _refuse(reason: str) -> NoReturn:
    """One sentence, as the mistake is in the test's own line."""
    pytest.fail(reason, pytrace=False)


def _seed(nodeid: str, number: int, chosen: int) -> int:
    key = f"{nodeid}\n{number}" + (f"\n{chosen}" if chosen else "")
    digest = hashlib.sha256(key.encode()).digest()
    return int.from_bytes(digest[:4], "big")
