"""Links between statements and what uses them: none is missing, none is dead, both ways show."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module

import pytest

import dpverify.accounting
from dpverify.accounting import published
from dpverify.accounting.notions import renyi
from dpverify.catalogue import families
from dpverify.certificate.report.statements import markdown
from dpverify.cli import _run
from dpverify.guarantee import PrivacyBound
from dpverify.ledger.reliance import accountants, users
from dpverify.ledger.statements import judge, known_papers, known_statement, known_statements

# Curves and bounds whose theorem no ledger has, with where it is from.
UNLINKED = {
    "ApproxDP": "Kairouz, Oh and Viswanath 2015, theorem 3.1",
    "ApproximateOptimalBound": "Murtagh and Vadhan 2016",
    "BasicBound": "Dwork and Roth 2014, theorem 3.16",
    "BoundedRange": "Dong, Durfee and Rogers 2020",
    "Composed": "a proof of this project",
    "DiscreteGaussian": "Canonne, Kamath and Steinke 2020",
    "DiscreteLaplace": "Ghosh, Roughgarden and Sundararajan 2009",
    "DiscretePair": "Dwork and Roth 2014, definition 2.4, summed over the outcomes above ε",
    "FiniteTradeOff": "Dong, Roth and Su 2022",
    "GaussianTradeOff": "Dong, Roth and Su 2022",
    "GroupBound": "Dong, Roth and Su 2022, theorem 2.14",
    "MixedResponse": "Kairouz, Oh and Viswanath 2015, mixed over a number of positions",
    "OptimalBound": "Kairouz, Oh and Viswanath 2015; Murtagh and Vadhan 2016",
    "Parallel": "a proof of this project",
    "PartitionSelection": "a proof of this project",
    "PoissonReplaced": "a proof of this project",
    "PoissonSampled": "a proof of this project",
    "PureRenyi": "Kairouz, Oh and Viswanath 2015, theorem 3.1",
    "PureSelection": "Kairouz, Oh and Viswanath 2015, theorem 3.1",
    "RankTwoNormal": "a proof of this project",
    "SampledWithoutReplacement": "Balle, Barthe and Gaboardi 2018; Zhu, Dong and Wang 2022",
    "Shuffled": "a proof of this project; Feldman, McMillan and Talwar 2021",
    "SimplifiedOptimalBound": "Kairouz, Oh and Viswanath 2015, theorem 3.4",
    "Staircase": "Geng and Viswanath 2014",
    "TruncatedLaplace": "Geng, Ding, Guo and Kumar 2020",
    "ZCDP": "Bun and Steinke 2016",
}


def bounds() -> Iterator[type[PrivacyBound]]:
    """The accountant's classes that are made: curves and bounds."""
    for module in pkgutil.walk_packages(dpverify.accounting.__path__, "dpverify.accounting."):
        import_module(module.name)
    found: list[type[PrivacyBound]] = [*PrivacyBound.__subclasses__()]
    for one in found:
        found += one.__subclasses__()
        if one.__module__.startswith("dpverify.accounting.") and not inspect.isabstract(one):
            yield one


def test_every_accountant_is_linked_or_says_why_not() -> None:
    divergences = [one for name, one in vars(renyi).items() if name.endswith("Renyi")]
    made = {f"{one.__module__}.{one.__name__}" for one in (*bounds(), *divergences)}
    levels = published.__name__
    linked = {name for name, ids in accountants().items() if ids and not name.startswith(levels)}
    assert linked <= made
    bare = {name.rpartition(".")[2] for name in made - linked}
    missing = bare - UNLINKED.keys()
    assert not missing, f"give {missing} `statements`, or say in UNLINKED where their theorem is"
    assert bare == UNLINKED.keys()


def test_every_published_level_is_linked() -> None:
    levels = {name for name in published.__all__ if inspect.isfunction(getattr(published, name))}
    assert levels - {"published_sigmas"} == set(published.STATEMENTS)


def test_every_mechanism_is_linked() -> None:
    """By statements about it; test_reliance.py has what its guarantee stands on."""
    named = {name for statement in known_statements() for name in statement.mechanisms}
    certifiable = {name for name, family in families().items() if family.build is not None}
    missing = certifiable - named
    assert not missing, f"name {missing} in the `mechanisms` of a statement of their paper"
    assert named <= set(families())


@pytest.mark.parametrize("name", accountants())
def test_no_link_of_an_accountant_is_dead(name: str) -> None:
    module, _, attribute = name.rpartition(".")
    assert attribute in vars(import_module(module))
    for id_ in accountants()[name]:
        found = judge(known_statement(id_))
        assert name in users(known_statement(id_))
        assert found.holds or module == published.__name__  # which enforces the condition


def test_a_statement_names_what_uses_it(capsys: pytest.CaptureFixture[str]) -> None:
    for id_, stands, user in [
        ("mironov2017.proposition-7", "used by", "renyi.GaussianRenyi"),
        ("stausholm2021.lemma-2", "read or replaced in", "published.sigma_classical"),
    ]:
        assert _run(["claims", "show", id_]) == 0
        (line,) = [line for line in capsys.readouterr().out.splitlines() if user in line]
        assert line.startswith(stands)
        assert user in markdown([judge(known_statement(id_))], known_papers())
    assert _run(["mechanisms", "noise-addition"]) == 0
    assert "li2023.theorem-3.5" in capsys.readouterr().out
