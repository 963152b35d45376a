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
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NoReturn

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
from dpverify.errors import ConfigurationError, DPVerifyError

if TYPE_CHECKING:
    from dpverify.auditing.engine import Report
    from dpverify.auditing.finding import AuditKind, Verdict
    from dpverify.data.adjacency import Adjacency, Of
    from dpverify.data.domain import Domain
    from dpverify.enclosure import Real
    from dpverify.privacy import Pair

__all__ = ["Auditor", "dp_audit"]


# Where nobody chooses a profile, that of those who develop.
_DEFAULTS = {**DEFAULTS, "alpha": None, "draws": None, "profile": "dev", "without": None}
_AUDITED = pytest.StashKey[int]()
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
            f"{item.nodeid} is marked dp_audit and never audited: call the fixture dp_audit "
            "in it, or remove the marker.",
            pytrace=False,
        )


@dataclass(frozen=True, slots=True)
class Auditor:
    """What the fixture `dp_audit` gives: call it with a mechanism or a function."""

    request: pytest.FixtureRequest

    def __call__(
        self,
        subject: Any,
        *,
        adjacency: Adjacency | None = None,
        epsilon: Real | None = None,
        delta: Real | None = None,
        of: Of | None = None,
        domain: Domain | None = None,
        attributes: int | None = None,
        rows: int | Sequence[int] | None = None,
        pairs: Sequence[Pair] | None = None,
        search: bool | None = None,
        kinds: Sequence[AuditKind] | None = None,
        draws: int | None = None,
        alpha: float | None = None,
        expect: Verdict = "no_violation_found",
    ) -> Report:
        """Audit, and fail the test unless the verdict is the one that is expected.

        Parameters
        ----------
        subject : a mechanism with a claim of its own, or what `adapt` takes
        adjacency, epsilon, delta : the claim; by default the marker's, or the mechanism's own
        of : of what a plain function is one: "record" or "dataset"; as for `adapt`, and so are
        domain, attributes, rows : of the data sets that the audit makes
        pairs, search, kinds, draws, alpha : as for `dpverify.auditing.engine.audit`; by default
            the settings' (`dpverify.auditing.settings`)
        expect : "violation" for a mechanism that is broken on purpose, which shows that the audit
            of the right one can fail

        Returns
        -------
        Report
            With the findings.
        """
        item = self.request.node
        item.stash[_AUDITED] = number = item.stash.get(_AUDITED, 0) + 1
        marker = item.get_closest_marker("dp_audit")
        given = dict(marker.kwargs) if marker else {}
        called = {
            "adjacency": adjacency,
            "epsilon": epsilon,
            "delta": delta,
            "of": of,
            "domain": domain,
            "attributes": attributes,
            "rows": rows,
            "pairs": pairs,
            "search": search,
            "kinds": kinds,
            "draws": draws,
            "alpha": alpha,
        }
        if (marker and marker.args) or not given.keys() <= called.keys():
            _refuse(f"the marker dp_audit takes only {', '.join(called)}, by name.")
        given |= {name: value for name, value in called.items() if value is not None}
        settings = {n: s.value for n, s in self.request.config.stash[_SETTINGS].items()}
        try:
            report = _audited(
                subject,
                given,
                settings,
                seed=_seed(item.nodeid, number, settings["seed"]),
                replay=f'pytest "{item.nodeid}" --dp-profile={settings["profile"]}',
            )
        except DPVerifyError as error:
            if error.exit_code != 2:  # not the caller's to mend: the whole traceback helps
                raise
            raise pytest.fail.Exception(str(error), pytrace=False) from None
        if report.verdict != expect:
            from dpverify.auditing.reporters.text import lines

            told = lines(report)
            if expect != "no_violation_found":
                told.insert(0, f"expected {expect}, found {report.verdict}")
            pytest.fail("\n".join(told), pytrace=False)
        return report


@pytest.fixture
def dp_audit(request: pytest.FixtureRequest) -> Callable[..., Report]:
    """Audit a mechanism or a function, and fail the test on a violation; see `Auditor`."""
    return Auditor(request)


def _audited(
    subject: Any, given: dict[str, Any], settings: dict[str, Any], *, seed: int, replay: str
) -> Report:
    """The audit of a mechanism, or of what is adapted to one."""
    from dpverify.auditing.engine import audit
    from dpverify.enclosure import rational

    at = None if given.get("delta") is None else rational("delta", given["delta"])
    values = {
        name: checked("dp_audit", name, given[name]) if name in given else settings[name]
        for name in ("alpha", "draws", "kinds")
    }
    return audit(
        _mechanism(subject, given, at),
        **values,
        delta=at,
        seed=seed,
        without=settings["without"],
        pairs=given.get("pairs"),
        search=given.get("search"),
        workers=1,
        replay=replay,
    )


_OF_FUNCTIONS = ("adjacency", "epsilon", "of", "domain", "attributes", "rows")


def _mechanism(subject: Any, given: dict[str, Any], at: Fraction | None) -> Any:
    """The mechanism to audit: the subject, or a function with the claim that is given."""
    from dpverify.accounting.curves.approximate_dp import ApproxDP
    from dpverify.auditing.targets.functions import adapt
    from dpverify.enclosure import rational

    options = {name: given[name] for name in _OF_FUNCTIONS if name in given}
    if hasattr(subject, "release") and hasattr(subject, "privacy"):
        if isinstance(subject, type):
            _refuse(f"dp_audit takes a mechanism, and {subject.__name__} is a class: make one.")
        if options:
            _refuse(f"a mechanism has its own claim and data: leave out {', '.join(options)}.")
        return subject
    missing = [name for name in ("adjacency", "epsilon") if name not in options]
    if missing:
        _refuse(f"dp_audit needs {' and '.join(missing)}: in the call, or in the marker.")
    claim = ApproxDP(epsilon=rational("epsilon", options.pop("epsilon")), delta=at or Fraction(0))
    return adapt(subject, claim=claim, **options)


def _refuse(reason: str) -> NoReturn:
    """One sentence, as the mistake is in the test's own line."""
    pytest.fail(reason, pytrace=False)


def _seed(nodeid: str, number: int, chosen: int) -> int:
    key = f"{nodeid}\n{number}" + (f"\n{chosen}" if chosen else "")
    digest = hashlib.sha256(key.encode()).digest()
    return int.from_bytes(digest[:4], "big")
