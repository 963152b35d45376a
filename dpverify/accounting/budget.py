"""A privacy budget that releases are spent from, kept in a file that processes share.

A `Filter` decides what fits; this keeps what was spent. The file is an SQLite database with one row
a spend. A spend is one transaction, which begins by locking the file: two processes can't spend the
same ε, and one that is killed has spent all of it or nothing. Every row holds the hash of the row
before it, so that a row that was changed, taken out or moved is noticed by whoever reads the file
next. Whoever may write the file can make all of it anew: only a hash that was noted elsewhere
(`Budget.head`) tells that.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR
from fractions import Fraction
from html import escape
from pathlib import Path
from secrets import token_hex
from typing import Any, Literal, Self

from dpverify.accounting._budget_file import Spend, Store, curve_of, now, rounded
from dpverify.accounting.composition.compose import Release
from dpverify.accounting.composition.filters import FILTERS, Cost
from dpverify.data.adjacency import Adjacency
from dpverify.enclosure import Real, exact_string, rational
from dpverify.errors import BudgetError, require, require_known
from dpverify.numbers import optional_delta
from dpverify.paths import to_path
from dpverify.visible import hidden

__all__ = ["Budget", "Spend"]


class Budget:
    """A limit of (ε, δ) for releases of which each may be chosen by what the others showed.

    Nothing is spent that would exceed it. What is proven for which composition stands in
    ``docs/budgets.md``; a spend is for the same people as all others.

    Parameters
    ----------
    epsilon, delta : the target for everything together; ε positive, δ in [0, 1)
    composition : the filter. "basic" adds up the ε and δ of every release; "gaussian" adds up the
        μ² of Gaussian differential privacy, and is exact for Gaussian noise; "zcdp" adds up ρ, and
        is made for many releases of little pure ε
    slack : for the latter two, the share of δ kept for releases that are known by an (ε, δ) alone
    unit : whom it protects; by default what the first release says that knows it
    path : of a new file; in memory by default

    Raises
    ------
    ParameterError
        If a number is outside its domain.
    OutputError
        If there is a file of this name, which `Budget.open` reads, or it can't be written.

    Examples
    --------
    >>> import dpverify as dpv
    >>> budget = dpv.Budget(epsilon=1, delta=1e-6)
    >>> spent = budget.spend(dpv.Laplace(scale=2), label="count of visits")
    >>> budget.left["epsilon"]
    Fraction(1, 2)
    >>> budget.spend(dpv.Laplace(scale=1))
    Traceback (most recent call last):
        ...
    dpverify.errors.BudgetExceededError: epsilon=1 doesn't fit: 0.5 of 1 is left. Nothing was spent.
    """

    def __init__(
        self,
        *,
        epsilon: Real,
        delta: Real = 0,
        composition: Literal["basic", "gaussian", "zcdp"] = "basic",
        slack: Real = 0,
        unit: str | Adjacency | None = None,
        path: Path | str | None = None,
    ) -> None:
        eps, target = rational("epsilon", epsilon), rational("delta", delta)
        kept = rational("slack", slack)
        require(eps > 0, "epsilon", epsilon, "positive")
        require(0 <= target < 1, "delta", delta, "in [0, 1)")
        require_known("composition", composition, FILTERS)
        none = composition != "basic" or kept == 0
        require(none, "slack", slack, "left out for basic composition, which uses all of delta")
        require(0 <= kept <= target, "slack", slack, f"in [0, delta={exact_string(target)}]")
        named = _to_unit(unit)
        limits = FILTERS[composition](epsilon=eps, delta=target, slack=kept).limits()
        settings = {
            "composition": composition,
            "epsilon": exact_string(eps),
            "delta": exact_string(target),
            "slack": exact_string(kept),
            "limits": {name: exact_string(value) for name, value in limits.items()},
            "unit": named,
            "created": now(),
            "id": token_hex(16),  # so that no two histories have a hash in common
        }
        self._store = Store(None if path is None else _to_path(path), settings)

    @classmethod
    def open(cls, path: Path | str) -> Self:
        """The budget in a file.

        Raises
        ------
        BudgetError
            If there is none, or it is damaged, locked, or of another version.
        """
        budget = cls.__new__(cls)
        budget._store = Store(_to_path(path))  # noqa: SLF001  # its own
        budget._store.state()  # noqa: SLF001
        return budget

    @property
    def path(self) -> Path | None:
        """The file; None in memory."""
        return self._store.path

    @property
    def epsilon(self) -> Fraction:
        """The target's ε."""
        return self._store.state().filter.epsilon

    @property
    def delta(self) -> Fraction:
        """The target's δ."""
        return self._store.state().filter.delta

    @property
    def composition(self) -> str:
        """The filter's name."""
        return self._store.state().filter.name

    @property
    def unit(self) -> str | None:
        """Whom it protects, where that was said."""
        return self._store.state().unit

    @property
    def limits(self) -> Cost:
        """What may be spent in all of each resource."""
        return self._store.state().limits

    @property
    def spent(self) -> Cost:
        """What was spent of each resource."""
        return self._store.state().spent

    @property
    def left(self) -> Cost:
        """What is left of each resource."""
        return self._store.state().left

    @property
    def odometer(self) -> Fraction:
        """The ε that, with the target's δ, bounds what was lost so far, whenever one looks.

        For neighbours P and Q, any rule that decides when to stop, and any event S of what was
        released by then, P(S) ≤ E_Q[e^ε; S] + δ, where ε is this number at that moment.
        """
        return self._store.state().odometer

    @property
    def history(self) -> tuple[Spend, ...]:
        """All spends, in their order."""
        return self._store.state().spends

    @property
    def head(self) -> str:
        """The hash of the last entry: noted elsewhere, it tells whether any entry was changed."""
        return self._store.state().head

    def cost(self, release: Release, *, delta: Real | None = None) -> Cost:
        """What a release would cost; see `spend`."""
        return self._store.state().filter.cost(curve_of(release), optional_delta(delta))

    def check(
        self,
        release: Release,
        *,
        delta: Real | None = None,
        label: str = "",
        unit: str | Adjacency | None = None,
    ) -> None:
        """Raise what `spend` would raise, of a file that can't be written too; spend nothing."""
        _check_visible("label", label)
        self._store.add(release, optional_delta(delta), label, _to_unit(unit), undone=True)

    def spend(
        self,
        release: Release,
        *,
        delta: Real | None = None,
        label: str = "",
        unit: str | Adjacency | None = None,
    ) -> Spend:
        """Spend a release, before it is drawn.

        Parameters
        ----------
        release : a curve, a mechanism, a guarantee or a certificate; a sum of several is one
            release, whose parameters are all fixed now
        delta : at which it counts as one point (ε, δ). Basic composition needs it where the privacy
            loss is unbounded, the others where they don't know its loss
        label : what it is, for the history
        unit : your word for whom it protects: where it doesn't say so itself, or where one change
            of this unit makes at most one change in the records behind it

        Raises
        ------
        BudgetExceededError
            If it doesn't fit. Nothing is spent then.
        ParameterError
            If it has no finite cost, protects another unit than the budget or doesn't say which
            one, or uses a public draw that an earlier one averaged over.
        BudgetError
            If the file can't be read or written.
        """
        _check_visible("label", label)
        return self._store.add(release, optional_delta(delta), label, _to_unit(unit))

    def verify(self, *, head: str | None = None) -> str:
        """Check the whole file: its form, the chain of hashes, the sums, and the limits' proof.

        Parameters
        ----------
        head : a hash noted earlier, which has to be that of an entry of this history

        Returns
        -------
        The hash of the last entry.

        Raises
        ------
        BudgetError
            That says what doesn't agree.
        """
        state = self._store.state()
        if not state.filter.proves(state.limits):
            raise BudgetError("the limits aren't proven for this epsilon and delta.")
        known = [state.first, *(spend.hash for spend in state.spends)]
        if head is not None and head not in known:
            raise BudgetError(f"no entry has the hash {head}: this is a different history.")
        return state.head

    def to_dict(self) -> dict[str, Any]:
        """Target, limits, what is spent and left, and the history."""
        state = self._store.state()
        amounts = {"limits": state.limits, "spent": state.spent, "left": state.left}
        return {
            **state.settings,
            "theorem": state.filter.theorem,
            "unit": state.unit,
            **{
                key: {name: exact_string(value) for name, value in cost.items()}
                for key, cost in amounts.items()
            },
            "odometer": exact_string(state.odometer),
            "head": state.head,
            "history": [spend.to_dict() for spend in state.spends],
        }

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Every resource with its limit, what is spent of it and what is left, as text.

        Spent is rounded up, the others down.
        """
        state = self._store.state()
        return [
            (
                name,
                rounded(state.limits[name], ROUND_FLOOR),
                rounded(state.spent[name], ROUND_CEILING),
                rounded(state.left[name], ROUND_FLOOR),
            )
            for name in state.limits
        ]

    def __str__(self) -> str:
        state = self._store.state()
        goal = f"epsilon={exact_string(state.filter.epsilon)}"
        goal += f", delta={exact_string(state.filter.delta)}" if state.filter.delta else ""
        left = " and ".join(f"{name} {left} of {limit}" for name, limit, _, left in self.rows())
        return f"{state.filter.name} budget of {goal}; left: {left}"

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in ("", "limit", "spent", "left"))
        rows = "".join(
            f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in self.rows()
        )
        return f"<table><tr>{head}</tr>{rows}</table>"


def _to_unit(unit: str | Adjacency | None) -> str | None:
    named = unit.unit if isinstance(unit, Adjacency) else unit
    _check_visible("unit", named or "")
    return named


def _to_path(path: Path | str) -> Path:
    named = to_path("path", path)
    require(bool(named.name), "path", path, "the name of a file")
    return named


def _check_visible(name: str, text: str) -> None:
    require(isinstance(text, str), name, text, "text")
    require(hidden(text) is None, name, hidden(text), "left out: it is a hidden character")
