"""δ(ε) of Gaussian noise on samples by integrating along a hyperbola that bends towards decay.

M(s)^T/(s(s + 1)) hardly falls along Re s = c where most losses are equal, as where T times the rate
is small. But e^{−sε} falls where Re s grows. Where laws continue to rays (`RayLaw`) M is bounded on

    s(u) = c + A·(sin θ·(cosh u − 1) + i·cos θ·sinh u),

which bends to the right: with a ray x = ξe^{iφ} of losses, θ ≤ φ < π/2, and u ≥ 0,

    Re (s(u) − c)x = Aξ·((cosh u − 1)·sin θ·cos φ − sinh u·cos θ·sin φ) ≤ −Aξ·sinh u·sin(φ − θ) ≤ 0,

since cosh u − 1 ≤ sinh u. On the other side, −y = −ξe^{−iφ}, both terms are negative. So

    |M(s(u))| ≤ m(φ, c) = a + ∫ |p(ξe^{iφ})|·e^{cξ cos φ}dξ + ∫ |p₋(ξe^{−iφ})|·e^{−cξ cos φ}dξ   (1)

for all u, where a is the mass at 0; also on the hyperbolas between it and the line Re s = c. So the
integral is the same along all of them.

**One loss alone.** With v = M − 1, M^T = 1 + Tv + R, and likewise of unlike losses. The f of 1 is 0
for ε ≥ 0, and that of 1 + v is what one release has, which its tails say. So

    f(ε) = T·f₁(ε) + (1/2πi)·∫ F(u)du,   F(u) = R(s)·e^{−sε}·s′/(s(s + 1)),   F(−u) = −conj F(u).

Next to the real axis R is about T²v²/2, and small. So it loses few digits where noise that hardly
ever occurs keeps c from being so large that e^{−cε} is about f. As m ≥ M(c) ≥ 1, by Jensen's
inequality, |R| ≤ m^T + T·m + T + 1.

**Strip.** s(u + iv) is the hyperbola of θ − v, from c(v) = c − A·sin θ + A·sin(θ − v) on. For |v| ≤
θ that is (1) with φ ≥ 2θ, and where c(v) > 0 no pole is met. Along it |s(s + 1)| ≥ |s|² ≥ c(v)² +
x², x = A·cos(θ − v)·sinh u, and |s′| ≤ A·cosh u: the norm of F is at most

    max |R|·e^{−c(v)ε}·π/(c(v)·cos(θ − v)),

and the trapezoid rule of step h is off by the two norms at v = ±θ over e^{2πθ/h} − 1 (Trefethen and
Weideman 2014, theorem 5.1). The terms beyond U are at most the integral from U on of what falls
with u, max |R|·e^{−ε·Re s(u)}·cosh u/(A·cos²θ·sinh²u).

**M − 1** is ∫ p·(e^{sx} − 1)dx and the same of the other side, as all masses make 1. It is computed
by the same rule in τ, x = e^{τ + iφ}: a strip is a sector, of angles φ ± θ. With φ = 2θ the norms
are the integrals of (1) at c and at 0, of the rays θ and 3θ. Terms before the first cell are at
most h·ξ²·|p|·|s|·e^{cξ}, and Σ h·ξ² ≤ ξ²/2; after the last one that is needed they are bounded by
cells, of length δ, with (δ + h)/h points at most. A removed record's other side is integrated along
z = e^{τ − iθ}, between z > 0, where its law has the norm Q[ln r < 0], and the ray −2θ, where
|m(−z)| is a normal density,

    ∫ |m(−ξe^{−iψ})|dξ ≤ e^{(μ²/8)(cos²ψ/cos 2ψ − 1)}/√cos 2ψ.

Its loss y there has Re y ≤ 0, and Im y ≥ 0 as long as ξ·sin ψ ≤ π. Beyond, e^{−z} is at most
r = e^{−π·cot ψ}, so that Im y ≥ −b, b = qr/(1 − q − qr), and Re y ≤ −q(1 − r) = −a. Hence
Re (s − c)y ≤ A·(sinh u·cos θ·b − (cosh u − 1)·sin θ·a) ≤ A·(cos θ·b)²/(sin θ·a) where cos θ·b is at
most sin θ·a. Elsewhere it isn't positive. |y| ≤ |z|, since |dy/dz| ≤ q/(1 − 2q) ≤ 1.

**Cells.** On a cell of the ray, ln of |p|·ξ·e^{cξ cos φ} is at most its value at the middle and
half the cell's length in τ times the largest slope in it. Beyond the last one the slope in ξ is at
most that at its end, as Re αe^{2iφ} < 0.

**Round-off**, u = 2⁻⁵³. z = sx errs by less than 5u|z|, and e^z − 1 therefore by that times e^{Re
z}, besides 48u(|e^{Re z} − 1| + 2 sin²(Im z/2) + |Im e^z|) for its elementary functions, which may
each err by 4 units in the last place; a weight by (16 + |x|)u, also where it is e^{−x}p; and a sum
of up to 2¹⁴ terms, added up in pairs, by 128u of their moduli. R at the middle of v errs by at most
the radius times |R′| = T|(1 + v)^{T − 1} − 1|.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Self

import numpy as np
from flint import acb, arb, ctx
from numpy.typing import NDArray

from dpverify.accounting.composition._root import root
from dpverify.accounting.composition._saddle import normal_epsilon
from dpverify.accounting.curves._by_tails import epsilon_by_tails
from dpverify.accounting.losses._ray_laws import RayLaw, ray_law
from dpverify.accounting.losses.base import ROUND_OFF, Doubles, Losses, TailedLoss
from dpverify.accounting.losses.continuous import GaussianLoss
from dpverify.enclosure import Enclosure, to_arb
from dpverify.errors import NumericalError
from dpverify.execution.arithmetic import within_doubles

__all__ = ["RayLosses", "RaySum", "ray_delta", "ray_epsilon", "ray_losses"]

_ANGLES = (0.2, 0.12, 0.06)  # θ
_BENDS = (0.5, 1.0, 2.0)  # A over c
_SHARES = (0.25, 0.5, 0.75, 1.0, 1.25)  # of the c that bounds F best
_CELL, _MOST_CELLS = 0.0625, 2000  # length in τ
_PRECISION = 128
_U, _SLACK = 2.0**-53, 1e-9
_SHARP_BALL = 2.0**-60  # relative radius that is no part of round-off
_MOST_WORK, _MOST_POINTS = 1 << 23, 1 << 14  # nodes times points, and points
_LOST, _WORTH = 60.0, 0.3  # −ln of what may cancel, and what one of it is worth, in nodes
_LARGEST, _UNDERFLOW = 600.0, 1e-300  # exponent
_ROUGH, _SHARP = 10.0, 33.0  # efforts
_ROUNDS, _MOVE, _NEAR, _CLOSE = 20, 1e-3, 0.1, 3.0
_ON_EDGE = 1e-6  # by which balls reach over the ends of their cells

RayLosses = Sequence[tuple[TailedLoss, RayLaw, int]]
_Complex = NDArray[np.complex128]


def ray_losses(losses: Losses) -> RayLosses | None:
    """Losses with their laws, if all continue to rays."""
    found = []
    for loss, count in losses:
        law = ray_law(loss)
        if law is None or not isinstance(loss, TailedLoss):
            return None
        found.append((loss, law, count))
    return found


def ray_delta(losses: Losses, epsilon: Fraction) -> arb | None:
    """Encloses f(ε) for ε > 0; None where this isn't known of the losses, or takes too long."""
    known, found = ray_losses(losses), None
    if known is None or not epsilon > 0:
        return None
    with ctx.workprec(_PRECISION), suppress(NumericalError), within_doubles():
        exact = to_arb(epsilon)
        alone = sum((n * _excess(loss, exact) for loss, _, n in known), arb(0)).upper()
        log_size = float(alone.log().mid()) if alone > 0 else 0.0
        for effort in (_ROUGH, _ROUGH, _SHARP):
            sums = RaySum.near(known, float(epsilon), log_size, effort)
            if sums is None:
                return None
            found = sums.value(exact)
            log_size = float(found.upper().log().mid())
    return found


def ray_epsilon(losses: Losses, target: Fraction) -> Enclosure | None:
    """Encloses where f is `target`; None as above.

    By steps in ln ε from a guess, of rough sums once a first one that could serve is far off.
    """
    known = ray_losses(losses)
    if known is None:
        return None
    with ctx.workprec(_PRECISION), suppress(NumericalError), within_doubles():
        goal = to_arb(target)
        log_target = float(goal.log().mid())
        eps, low, high, effort = _guess(known, target), 0.0, math.inf, _SHARP
        for _ in range(_ROUNDS):
            sums = RaySum.near(known, eps, log_target, effort) if eps > 0 else None
            if sums is None:
                return None
            here, after = (sums.value(arb(x)) for x in (eps, eps * (1 + _MOVE)))
            if not here.rad() < _NEAR * goal:  # round-off, of which a step may be made
                return None
            if not (here > 0 and after > 0):  # far below the target
                eps, high, effort = max((low + eps) / 2, eps / 4), eps, _ROUGH
                continue
            log = float(here.mid().log())
            off, fall = log - log_target, max((log - float(after.mid().log())) / _MOVE, _NEAR)
            if effort == _SHARP and abs(off) < _CLOSE:
                eps *= math.exp(off / fall)
                return root(sums.value, eps, eps / fall, goal, math.inf, is_exact=False)
            low, high = (eps, high) if off > 0 else (low, eps)
            eps *= math.exp(max(min(off / fall, 1.5), -1.5))
            effort = _SHARP if abs(off) < _NEAR else _ROUGH
            if not low < eps < high:
                eps = (low + high) / 2
    return None


def _guess(known: RayLosses, target: Fraction) -> float:
    """The ε at which one release, or the normal law of all, has the target; a proposal."""
    count = sum(n for _, _, n in known)
    normal = normal_epsilon([(law.mu_squared, law.rate, n) for _, law, n in known], target)
    return max(normal, *(epsilon_by_tails(loss, target / count).upper for loss, _, _ in known))


def _excess(loss: TailedLoss, epsilon: arb) -> arb:
    """The value f₁ of one release."""
    own, other = loss.tails(epsilon)
    return own - epsilon.exp() * other


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Ray:
    """Cells of τ along a ray, and bounds in each.

    Attributes
    ----------
    places, logs : ξ at the middle of a cell, and ln of |p|·ξ there
    slopes : of the latter in τ, the least and the largest
    start : the ξ before the first cell, and ln of a bound on |p| up to there
    end : the ξ after the last cell, ln |p| there, and from there on the largest slope in ξ
    """

    angle: float
    places: Doubles
    logs: Doubles
    slopes: tuple[Doubles, Doubles]
    start: tuple[float, float]
    end: tuple[float, float, float]

    def log_cells(self, c: float) -> Doubles:
        """Ln of bounds on ∫ |p|·e^{cξ cos φ}dξ before the cells, in each and after them.

        The last one also bounds the terms there of a sum in τ, of a step of at most 1.
        """
        tilt = c * math.cos(self.angle)
        along = tilt * self.places
        steepest = np.maximum(*(abs(slope + along) for slope in self.slopes))
        steepest += abs(along) * math.expm1(_CELL)
        cells = self.logs + along + steepest * (_CELL / 2) + math.log(_CELL)
        first, log_first = self.start
        last, log_last, slope = self.end
        if not (slope + tilt) * last < -1:
            return np.full(len(cells) + 2, math.inf)
        before = log_first + math.log(first) + max(tilt, 0.0) * first
        after = log_last + tilt * last + math.log(last - 1 / (slope + tilt))
        places = np.concatenate([[first], self.places, [last]])
        found: Doubles = np.concatenate([[before], cells, [after]])
        return found + _SLACK * (1 + abs(c) * places)

    def log_norm(self, c: float) -> float:
        """Ln of a bound on the integral."""
        return _log_sum(self.log_cells(c))


@lru_cache(maxsize=64)
def _ray(law: RayLaw, angle: float, reach: int) -> _Ray:
    """Cells up to where moments up to 4^reach are bounded."""
    with ctx.workprec(_PRECISION):
        turn, first, last = _turn(angle), law.scale(), 1.0
        while not _slope(law, turn, last) < -2 * 4.0**reach - 1:
            last *= 1.5
        count = math.ceil(math.log(last / first) / _CELL)
        if count > _MOST_CELLS:
            raise NumericalError(f"the law of {law} takes too many cells")
        places = first * np.exp(_CELL * (np.arange(count) + 0.5))
        last = float(places[-1]) * math.exp(_CELL / 2)
        cell = arb(0, _CELL / 2 * (1 + _ON_EDGE)).exp()
        logs, slopes = [], []
        for place in places.tolist():
            logs.append(float(law.log_density(turn * place).real.upper()) + math.log(place))
            x = turn * (place * cell)
            slope = law.slope((-x).exp())
            ball = (x * (slope.alpha * x + slope.beta)).real + 1
            slopes.append((float(ball.lower()), float(ball.upper())))
        start = law.log_density(turn * arb(first / 2, first / 2 * (1 + _ON_EDGE))).real.upper()
        end = law.log_density(turn * last).real.upper()
        low, high = np.array(slopes).T
        return _Ray(
            angle=angle,
            places=places,
            logs=np.array(logs),
            slopes=(low, high),
            start=(first * (1 + _ON_EDGE), float(start)),
            end=(last, float(end), _slope(law, turn, last * (1 - _ON_EDGE))),
        )


def _turn(angle: float) -> acb:
    return acb(arb(angle).cos(), arb(angle).sin())


def _slope(law: RayLaw, turn: acb, place: float) -> float:
    """The largest slope of ln |p| in ξ from there on; infinite where none is proven."""
    size = (-(turn.real * place)).exp().upper()
    slope = law.slope(acb(arb(0, size), arb(0, size)))
    alpha = (slope.alpha * turn * turn).real
    return float((alpha * place + (slope.beta * turn).real).upper()) if alpha < 0 else math.inf


def _log_sum(logs: Doubles) -> float:
    most = float(logs.max())
    return most + math.log(float(np.exp(logs - most).sum())) + _SLACK if most < math.inf else most


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hyperbola:
    """A path, with nodes at whole multiples of a step of u.

    Attributes
    ----------
    c, bend, angle : c, A and θ
    step, count : h, and the number of nodes
    """

    c: float
    bend: float
    angle: float
    step: float = 0.0
    count: int = 0

    def base(self, side: int) -> float:
        """The least real part on it, or at v = θ and −θ for sides −1 and 1."""
        if not side:
            return self.c
        return self.c + self.bend * (math.sin(self.angle * (1 + side)) - math.sin(self.angle))

    def nodes(self) -> list[tuple[acb, acb]]:
        """The values s and s′ at each."""
        turn, bend, found = _turn(self.angle), arb(self.bend), []
        for k in range(self.count):
            u = arb(self.step) * k
            rise, width = bend * turn.imag, bend * turn.real
            s = acb(arb(self.c) + rise * (u.cosh() - 1), width * u.sinh())
            found.append((s, acb(rise * u.sinh(), width * u.cosh())))
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bounds:
    """Bounds for a θ, by cells that suffice for c up to 4^reach."""

    laws: tuple[tuple[RayLaw, int], ...]
    angle: float
    reach: int

    def log_rest(self, c: float) -> float:
        """Ln of a bound on |R|, by (1) on the ray 2θ, but on z > 0 for a removed record."""
        total = 0.0
        for law, count in self.laws:
            ray = _ray(law, 2 * self.angle, self.reach)
            parts = [ray.log_norm(c), _log_fixed(law)]
            if law.mirrored:
                parts.append(ray.log_norm(-1 - c))
            total += count * _log_sum(np.array(parts))
        number = math.log(sum(count for _, count in self.laws) + 1)
        rest = np.array([total, max(total, 0.0) + number, number])
        return _log_sum(rest) + _SLACK * (1 + abs(total))


@lru_cache(maxsize=64)
def _log_fixed(law: RayLaw) -> float:
    """Ln of the atom's mass, or of Q[ln r < 0] for a removed record, above the first law's."""
    with ctx.workprec(_PRECISION):
        if law.mirrored:
            mass = law.atom()
        else:
            mass = 1 - GaussianLoss(mu_squared=law.mu_squared).tails(arb(0))[1]
        return float(mass.log().upper()) if mass > 0 else -math.inf


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RaySum:
    """f at any ε > 0: always an enclosure, and a narrow one near the ε that it was made for.

    Attributes
    ----------
    losses : with how often each occurs
    path : the hyperbola
    nodes : pairs of s and what e^{−sε} is multiplied with, half of it at the first one
    strip : ln of max |R|·π/(c(v)·cos(θ − v)), and c(v), for v = ±θ
    beyond : ln of what later terms are at most, but for e^{−ε·Re s}, and Re s at the last node
    """

    losses: Sequence[tuple[TailedLoss, int]]
    path: _Hyperbola
    nodes: Sequence[tuple[acb, acb]]
    strip: Sequence[tuple[float, float]]
    beyond: tuple[float, arb]

    @classmethod
    def near(cls, known: RayLosses, eps: float, log_size: float, effort: float) -> Self | None:
        """For f of about e^log_size, with an error of about e^−effort of it.

        None where that takes too many terms.
        """
        laws = tuple((law, count) for _, law, count in known)
        plans = [_plan(laws, angle, eps, log_size, effort) for angle in _ANGLES]
        path, bounds, lost = min(
            (plan for plan in plans if plan), key=lambda plan: plan[0].count, default=(None,) * 3
        )
        if path is None or bounds is None or lost is None:
            return None
        counts, nodes = [count for _, count in laws], path.nodes()
        effort += lost + math.log(sum(counts))
        columns = []
        for law, _ in laws:
            column = _moments(law, path, bounds.reach, effort)
            if column is None:
                return None
            columns.append(column)
        weights = [
            _rest(values, counts) * slope / (s * (s + 1))
            for (s, slope), values in zip(nodes, zip(*columns, strict=True), strict=True)
        ]
        weights[0] /= 2
        strip = []
        for side in (-1, 1):
            base = path.base(side)
            turned = math.log(base * math.cos(path.angle * (1 + side)) / math.pi)
            strip.append((bounds.log_rest(base) - turned, base))
        last = (path.count - 1) * path.step
        log = math.log(path.bend * math.sinh(last)) + 2 * math.log(math.cos(path.angle))
        return cls(
            losses=[(loss, count) for loss, _, count in known],
            path=path,
            nodes=[(s, weight) for (s, _), weight in zip(nodes, weights, strict=True)],
            strip=strip,
            beyond=(bounds.log_rest(path.c) - log, nodes[-1][0].real),
        )

    def value(self, epsilon: arb) -> arb:
        """Encloses f(ε), at the precision that it was made for."""
        step, angle = arb(self.path.step), arb(self.path.angle)
        alone = sum((n * _excess(loss, epsilon) for loss, n in self.losses), arb(0))
        total = sum(((w * (-s * epsilon).exp()).imag for s, w in self.nodes), arb(0))
        off = 2 * (arb(self.beyond[0]) - self.beyond[1] * epsilon).exp()
        for log, base in self.strip:
            size = (arb(log) - arb(base) * epsilon).exp()
            off += size / (2 * arb.pi() * angle / step).expm1()
        off *= (1 + _SLACK) / (2 * arb.pi())
        return alone + total * step / arb.pi() + arb(0, off.upper())


def _rest(values: Sequence[acb], counts: Sequence[int]) -> acb:
    """R = Π(1 + v)ⁿ − 1 − Σnv, by its value at the middles and its slopes."""

    def product(these: Sequence[acb], less: int = -1) -> acb:
        found = acb(1)
        for k, (v, n) in enumerate(zip(these, counts, strict=True)):
            found *= (1 + v) ** (n - (k == less))
        return found

    middles = [v.mid() for v in values]
    found = (
        product(middles) - 1 - sum((n * v for v, n in zip(middles, counts, strict=True)), acb(0))
    )
    off = arb(0)
    for k, (v, n) in enumerate(zip(values, counts, strict=True)):
        off += n * abs(product(values, k) - 1).upper() * (v.real.rad() + v.imag.rad())
    return found + _around(off)


def _around(off: arb) -> acb:
    """A ball around 0."""
    side = arb(0, off.upper())
    return acb(side, side)


def _plan(
    laws: tuple[tuple[RayLaw, int], ...], angle: float, eps: float, log_size: float, effort: float
) -> tuple[_Hyperbola, _Bounds, float] | None:
    """The hyperbola of few nodes, of which not too much cancels, and −ln of what does."""
    most = max(4 * (effort - log_size) / eps, 4.0)
    bounds = _Bounds(laws=laws, angle=angle, reach=math.ceil(math.log(most) / math.log(4)))

    def size(c: float) -> float:
        """Ln of a bound on F about c."""
        return bounds.log_rest(c) - c * eps - math.log(c)

    low, high = most * 1e-5, most
    for _ in range(4):
        grid = np.geomspace(low, high, 9).tolist()
        sizes = [size(c) for c in grid]
        at = sizes.index(min(sizes))
        low, high = grid[max(at - 1, 0)], grid[min(at + 1, 8)]
    best, least = None, math.inf
    for c in (share * grid[at] for share in _SHARES):
        lost = max(size(c) - log_size, 0.0)
        for bend in _BENDS if lost < _LOST else ():
            path = _Hyperbola(c=c, bend=bend * c, angle=angle)
            room = effort + max(lost, *(size(path.base(side)) - log_size for side in (-1, 1)))
            if not room < math.inf:
                continue
            step = 2 * math.pi * angle / room
            last = math.acosh(1 + (effort + lost) / (eps * path.bend * math.sin(angle)))
            count = max(math.ceil(last / step) + 1, 2)
            cost = count * math.exp(_WORTH * lost)
            if cost < least and count * _MOST_POINTS <= 8 * _MOST_WORK:
                path = _Hyperbola(c=c, bend=path.bend, angle=angle, step=step, count=count)
                best, least = (path, bounds, lost), cost
    return best


def _moments(law: RayLaw, path: _Hyperbola, reach: int, effort: float) -> list[acb] | None:
    """M − 1 at the nodes, to about e^−effort; None where that takes too many points."""
    theta, c = path.angle, path.c
    ray = _ray(law, 2 * theta, reach)
    nodes = np.array([complex(s) for s, _ in path.nodes()])
    highest = float(abs(nodes[-1])) * (1 + _SLACK)
    tilts = [(c, 0.0), (-1 - c, -1.0)] if law.mirrored else [(c, 0.0)]
    outer = [_ray(law, theta, reach), _ray(law, 3 * theta, reach)]
    norm = _log_sum(np.array([each.log_norm(t) for each in outer for pair in tilts for t in pair]))
    step = _rounded(2 * math.pi * theta / (effort + max(norm, 0.0) + 1))
    off = arb(norm).exp() / (2 * arb.pi() * arb(theta) / arb(step)).expm1()
    cells = [np.logaddexp(*(ray.log_cells(t) for t in pair)) for pair in tilts]
    needed = np.flatnonzero(np.max(cells, axis=0) > -effort - math.log(len(cells[0])))
    last = min(int(needed.max(initial=1)), len(ray.places))
    first, start = ray.start
    low = min((-effort - start - math.log(highest)) / 2, math.log(first))
    j = math.floor(low / step), math.ceil((math.log(ray.places[last - 1]) + _CELL) / step)
    before = arb(step * j[0]).exp()
    for each in cells:
        off += arb(_log_sum(each[last + 1 :])).exp() * (1 + 2 * step / _CELL)
        off += arb(start).exp() * highest * before**2 * (c * before).exp()
    if (j[1] - j[0]) * len(nodes) > _MOST_WORK or j[1] - j[0] >= _MOST_POINTS:
        return None
    weights, places = _points(law, 2 * theta, step, *j)
    sums = [_summed(nodes, weights, places)]
    if law.mirrored:
        sums.append(_summed(nodes, (weights * np.exp(-places)).conj(), -places.conj()))
    else:
        found = _below(law, path, highest, effort)
        if found is None:
            return None
        sums.append(_summed(nodes, *found[0]))
        off += found[1]
    (total, error), (value, wrong) = sums
    return [
        acb(arb(m.real, e), arb(m.imag, e)) + _around(off)
        for m, e in zip((total + value).tolist(), (error + wrong).tolist(), strict=True)
    ]


def _rounded(step: float) -> float:
    """To five binary digits, so that points serve again."""
    scale = 2.0 ** (math.floor(math.log2(step)) - 4)
    return math.floor(step / scale) * scale


def _below(
    law: RayLaw, path: _Hyperbola, highest: float, effort: float
) -> tuple[tuple[_Complex, _Complex], arb] | None:
    """Points of a removed record's other side, and what the rule is off by."""
    theta, psi = arb(path.angle), 2 * arb(path.angle)
    square, q, mu = to_arb(law.mu_squared), to_arb(law.rate), math.sqrt(law.mu_squared)
    r = (-arb.pi() / psi.tan()).exp()
    b, a = q * r / (1 - q - q * r) * theta.cos(), q * (1 - r) * theta.sin()
    if not b <= a:
        return None
    growth = (arb(path.bend) * b**2 / a).exp()
    bulge = (square / 8 * (psi.cos() ** 2 / (2 * psi).cos() - 1)).exp()
    norm = 2 + bulge / (2 * psi).cos().sqrt() * (1 + growth)
    step = _rounded(2 * math.pi * path.angle / (effort + float(norm.log()) + 1))
    off = norm / (2 * arb.pi() * theta / arb(step)).expm1()
    flat = (bulge / (2 * arb.pi() * square).sqrt()).upper()  # above the density along −θ
    low = (-effort - float(flat.log()) - math.log(highest)) / 2
    high = math.log(mu * (mu + math.sqrt(2 * effort + 20)) / math.cos(2 * path.angle))
    j = math.floor(low / step), math.ceil(high / step)
    first, last = (arb(step * k).exp() for k in j)
    slope = (last * psi.cos() - square / 2 * theta.cos()) / square  # of −ln of it, which rises
    if j[1] - j[0] >= _MOST_POINTS or not slope * last > 1:
        return None
    log = -(last**2 * psi.cos() - square * last * theta.cos() + square**2 / 4) / (2 * square)
    off += growth * flat * highest * first**2
    off += (1 + growth) * log.exp() / (2 * arb.pi() * square).sqrt() / slope
    return _points(law, -path.angle, step, *j), off


@lru_cache(maxsize=16)
def _points(
    law: RayLaw, angle: float, step: float, first: int, last: int
) -> tuple[_Complex, _Complex]:
    """Weights h·p·x at x = e^{jh + iφ}, and x; below the real axis those of the other side."""
    turn, weights, places = _turn(angle), [], []
    for k in range(first, last + 1):
        x = turn * (arb(step) * k).exp()
        place, log = (x, law.log_density(x)) if angle > 0 else law.below(x)
        weight = step * x * log.exp()
        for ball in (weight, place):
            if not ball.real.rad() + ball.imag.rad() <= _SHARP_BALL * abs(ball).lower():
                raise NumericalError(f"the law of {law} isn't resolved at {x}")
        weights.append(complex(weight))
        places.append(complex(place))
    return np.array(weights), np.array(places)


def _summed(nodes: _Complex, weights: _Complex, places: _Complex) -> tuple[_Complex, Doubles]:
    """Σ w·(e^{sx} − 1), and what that errs by."""
    angles = nodes[:, None] * places
    if not angles.real.max() < _LARGEST:
        raise NumericalError(f"a moment near {nodes[0]} is beyond doubles")
    rise, half = np.expm1(angles.real), angles.imag / 2
    sine, grown = np.sin(half), 1 + rise
    square = 2 * sine * sine
    terms = np.empty_like(angles)
    terms.real = rise * (1 - square) - square
    terms.imag = grown * (2 * sine * np.cos(half))
    sizes = np.abs(weights)
    off = (np.abs(angles) * grown) @ (16 * _U * sizes)
    parts = np.abs(rise) + square + np.abs(terms.imag)
    off += parts @ (80 * _U * sizes * (1 + np.abs(places)))
    off += _UNDERFLOW * (1 + grown.sum(axis=1))
    terms *= weights
    off += 128 * _U * np.abs(terms).sum(axis=1)
    return terms.sum(axis=1), off * (1 + ROUND_OFF * len(weights))
