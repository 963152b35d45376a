"""The audit of a claim, as users call it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.auditing.config import AuditConfig
from dpverify.auditing.engine import run
from dpverify.auditing.outputs.journal import AuditJournal
from dpverify.auditing.outputs.time_limit import ending
from dpverify.auditing.report import Report
from dpverify.auditing.request import Selection
from dpverify.auditing.settings import AuditKind, Omittable
from dpverify.auditing.targets.command import Command
from dpverify.auditing.targets.encoded import Encoded
from dpverify.auditing.targets.functions import adapt
from dpverify.data.adjacency import Adjacency, Of
from dpverify.data.columns import Number
from dpverify.data.domain import Domain
from dpverify.data.table import Table
from dpverify.enclosure import Real, rational
from dpverify.errors import ParameterError, require, require_text
from dpverify.execution.progress import notebook_line
from dpverify.privacy import Mechanism, Pair

__all__ = ["audit"]


def audit(  # noqa: PLR0913 - the front door: a keyword for each word
    subject: Any,
    *,
    epsilon: Real | None = None,
    delta: Real | None = None,
    adjacency: Adjacency | None = None,
    domain: Domain | Number | Table | None = None,
    of: Of | None = None,
    attributes: Real | None = None,
    rows: Real | Sequence[Real] | None = None,
    many: bool = False,
    features: Callable[[Any], Any] | None = None,
    pairs: Sequence[Pair] | None = None,
    search: bool | None = None,
    kinds: Iterable[AuditKind] | None = None,
    without: Iterable[Omittable] = (),
    alpha: Real = 0.01,
    draws: Real = 10_000,
    seed: Real = 0,
    workers: Real = -1,
    time_limit: Real = 10,
    brief: bool | None = None,
    replay: str = "",
    journal: AuditJournal | None = None,
    progress: Callable[[str], None] | None = None,
) -> Report:
    """Attack what a mechanism, or a function, claims.

    Parameters
    ----------
    subject : mechanism or callable
        Anything with `release`, `adjacency` and `privacy`, or what `adapt` takes: a function of a
        record or a data set (and numpy's generator), a `Command`, an estimator with `fit`, an
        OpenDP measurement, a mechanism of diffprivlib or PyDP.
    epsilon, delta : real
        What a function claims; delta is 0 by default. Of a mechanism, which has its own claim,
        delta is where ε is bounded: by default the one that fits the claim.
    adjacency, domain, of, attributes, rows
        Of a function, as for `adapt`: whom the claim protects, and what data sets are made of.
    many : bool
        Whether a function makes many draws at once, f(data, n, rng), for audits of a million. That
        these are independent is your word: no audit of them tests it.
    features : callable
        A function of an output, which gives the numbers or the value that is audited in its place.
        That is post-processing, so it can't make a private output less private. It is for leaks
        that don't show in the output as it stands, as where a hash is released with its seed.
    pairs : sequence of Pair
        Neighbours; by default the mechanism's own worst pairs, else those of a search.
    search : bool
        Whether to search for a worse pair beside those, in the mechanism's `domain` (None for all
        numbers) among data sets of its `rows` records of `attributes` values. Sizes that it
        doesn't state are those of its pairs. By default there is a search where it names no pairs.
    kinds : iterable of str
        Attacks to make; by default those that apply.
    without : iterable of str
        Kinds that are left out unless `kinds` asks for them; "precision-of-doubles" leaves out the
        audit of precision, unless all outputs are whole numbers.
    alpha, draws, seed, workers, time_limit
        As for `AuditConfig`; alpha is the level of the whole report, and draws are at least 20.
    brief : bool
        Whether to make fewer draws where these already tell much, and none once the claim is
        refuted. By default so where pairs are searched for and a release takes 0.3 ms or more.
    replay : str
        The line that repeats the audit, for the report; by default code that calls this function.
    journal : AuditJournal
        Keeps what was found, so that an interrupted audit resumes.
    progress : callable
        Called with the name of each step as it begins; by default a line below a notebook's cell
        shows it, and nothing elsewhere.

    Raises
    ------
    ParameterError
        If a value is outside its domain, a function's claim is missing, a pair isn't one of
        neighbours, or a kind is asked for that can't be run on this mechanism.
    ConfigurationError
        If the journal is that of another audit.

    Examples
    --------
    >>> from dpverify.data.adjacency import Attribute
    >>> def noisy(x, rng):
    ...     return x + rng.laplace(scale=0.5, size=x.shape)
    >>> report = audit(
    ...     noisy,
    ...     epsilon=1,
    ...     adjacency=Attribute(beta=Fraction(1)),
    ...     of="record",
    ...     attributes=1,
    ...     kinds=["black-box"],
    ...     draws=1000,
    ... )
    >>> report.verdict
    'violation'
    >>> report.epsilon_lower > 1
    True
    """
    at = None if delta is None else rational("delta", delta)
    words = {
        "epsilon": epsilon,
        "adjacency": adjacency,
        "domain": domain,
        "of": of,
        "attributes": attributes,
        "rows": rows,
        "many": None if many is False else many,
    }
    config = AuditConfig(
        delta=at,
        alpha=alpha,
        draws=draws,
        seed=seed,
        workers=workers,
        time_limit=time_limit,
        brief=brief,
    )
    kept = journal is None or isinstance(journal, AuditJournal)
    require(kept, "journal", journal, "an AuditJournal")
    told = progress is None or callable(progress)
    require(told, "progress", progress, "a function of a step's name")
    require_text("replay", replay)
    selection = Selection(kinds=kinds, without=without, pairs=pairs, search=search)
    mechanism = _mechanism(subject, at, {n: v for n, v in words.items() if v is not None})
    if features is not None:
        mechanism = Encoded(mechanism, features)
    try:
        with ending(config.longest), notebook_line(wanted=progress is None) as line:
            say = progress or line
            return run(mechanism, config, selection, replay=replay, journal=journal, progress=say)
    finally:
        if isinstance(subject, Command):
            subject.close()


def _mechanism(subject: Any, delta: Fraction | None, words: dict[str, Any]) -> Mechanism:
    """The subject, or a function with the claim that is made for it."""
    if hasattr(subject, "release"):
        if words:
            rule = "left out for a mechanism, which has its own claim and data"
            raise ParameterError(", ".join(words), "given", rule)
        mechanism: Mechanism = subject
        return mechanism
    missing = [name for name in ("adjacency", "epsilon") if name not in words]
    if missing:
        rule = "given for what isn't a mechanism, with `release`, `adjacency` and `privacy`"
        way_out = "A function is audited by audit(function, epsilon=1, adjacency=Attribute(1), …)."
        raise ParameterError(" and ".join(missing), "missing", rule, way_out)
    epsilon = rational("epsilon", words.pop("epsilon"))
    return adapt(subject, claim=ApproxDP(epsilon=epsilon, delta=delta or Fraction(0)), **words)
