"""Releases as people write them, ``10 x gaussian sigma=4``: one by one, or in a file of many.

A name and its ``key=value`` are those of ``dpverify account NAME -p key=value``. The columns of a
file, or the keys of its ``[[releases]]``, are count, mechanism, parameters, label and date.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from dpverify.accounting.calibrate import DISTRIBUTIONS
from dpverify.accounting.composition.compose import THEOREM, compose
from dpverify.accounting.composition.curve import Composed
from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.cli.output import exact_number, key_values, parse_parameters
from dpverify.data.adjacency import Record, Replace
from dpverify.enclosure import Enclosure, Real, rational, short_string
from dpverify.errors import (
    ConfigurationError,
    DPVerifyError,
    ParameterError,
    did_you_mean,
    require,
)
from dpverify.guarantee import Guarantee, PrivacyCurve, common_adjacency
from dpverify.numbers import count as to_count
from dpverify.privacy import Certifiable
from dpverify.toml import MAX_BYTES, read_toml

__all__ = ["POINT", "Facts", "Named", "Written", "named", "read", "total_of"]

Facts = Mapping[str, Enclosure | str | int]

POINT = "approximate-dp"
_POINT = {"epsilon": "the published epsilon, in nats", "delta": "the published delta"}
_SAMPLE = {
    "rate": "the probability of a record to be in the Poisson sample that the release reads",
    "replaced": "1 where a record is replaced; the noise is still stated for what one record adds",
    "size": "how many records are in the batch that is read; the noise is stated for replacing one",
    "out_of": "how many records there are, of which a batch is drawn without replacement",
    "users": "how many users answer so, each once, before their answers are shuffled",
}
_COLUMNS = ("count", "mechanism", "parameters", "label", "date")
_WRITTEN = re.compile(r"\s*(?:(?P<count>\S+)\s+[x×]\s+)?(?P<name>\S+)(?P<parameters>.*)", re.DOTALL)
_ENDINGS = (".csv", ".toml", ".json")
_FILE = re.compile(r"[^\s=]+\.[A-Za-z]+")
_MOST_MECHANISMS = 10_000
_REPLACED = (
    "rate=1 replaced=1 if it is what one record adds, size=1 out_of=1 if it is how far the answer "
    "moves when one is replaced."
)
_IN_PYTHON = (
    "in Python, where dpv.compose takes noise with the mechanisms' adjacency if it is how far the "
    "answer moves when one is replaced."
)
_THOUSAND = "In some languages 1.000 is a thousand."


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A noise, a published point or a mechanism, by its name.

    Attributes
    ----------
    curve : of one release
    facts : numbers to be shown
    about : what proves the curve, and of a mechanism what its guarantee says
    guarantee : a mechanism's
    """

    curve: PrivacyCurve
    facts: Facts
    about: Mapping[str, str]
    guarantee: Guarantee | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """So many releases of one kind.

    Attributes
    ----------
    text : how they were written, without their number
    what : what one of them is
    count : how many there are
    label, date : as a file has them
    """

    text: str
    what: Named
    count: int = 1
    label: str = ""
    date: str = ""

    @property
    def curve(self) -> PrivacyCurve:
        """Of all of them."""
        return self.what.curve if self.count == 1 else self.count * self.what.curve

    def to_dict(self) -> dict[str, Any]:
        """As it was written."""
        known = {"label": self.label, "date": self.date}
        return {"release": self.text, "count": self.count, **{k: v for k, v in known.items() if v}}

    def __str__(self) -> str:
        return self.text if self.count == 1 else f"{self.count} x {self.text}"


def named(name: str, texts: Mapping[str, str]) -> Named:
    """What a name and its parameters stand for.

    Parameters
    ----------
    name : of a noise, `POINT`, or a mechanism's
    texts : parameters by key; for a noise or a point, ``rate`` is that of a Poisson sample, of
        which one record may be ``replaced``, ``size`` and ``out_of`` are of a batch without
        replacement, and ``users`` of shuffled answers
    """
    if name in DISTRIBUTIONS:
        noise = DISTRIBUTIONS[name]
        known = {**noise.query, noise.noise[0]: noise.noise[1]}
        values, sample = _parsed(texts, known, noise.defaults)
        facts: Facts = {noise.noise[0]: Enclosure.of_exact(values[noise.noise[0]])}
        return _sampled(noise.curve(values), sample, facts, noise.theorem)
    if name == POINT:
        values, sample = _parsed(texts, _POINT, {"delta": Fraction(0)})
        theorem = "Kairouz, Oh and Viswanath 2015 (arXiv:1311.0776v4), theorem 3.1"
        point = ApproxDP(epsilon=values["epsilon"], delta=values["delta"])
        return _sampled(point, sample, {}, theorem)
    mechanism = _made(name, texts)
    facts = {
        f"{section}.{key}": value
        for section, numbers in mechanism.facts().items()
        for key, value in numbers.items()
    }
    return _promised(mechanism.guarantee(), mechanism.privacy(), facts)


def _parsed(
    texts: Mapping[str, str], known: Mapping[str, str], defaults: Mapping[str, Fraction]
) -> tuple[dict[str, Fraction], dict[str, Fraction]]:
    """The numbers of a noise, and those of the sample that were given."""
    unset: dict[str, Real] = dict.fromkeys(_SAMPLE, 0)
    given = parse_parameters(texts, {**known, **_SAMPLE}, defaults={**defaults, **unset})
    values = {key: rational(key, value) for key, value in given.items() if key in known}
    return values, {key: rational(key, given[key]) for key in _SAMPLE if key in texts}


def _sampled(
    curve: PrivacyCurve, sample: Mapping[str, Fraction], facts: Facts, theorem: str
) -> Named:
    """The curve, or that on a sample, with what proves it."""
    if sample:
        curve, module = _on_sample(curve, sample)
        facts = {**facts, **{key: Enclosure.of_exact(x) for key, x in sample.items()}}
        theorem += f"; dpverify.accounting.curves.{module}"
    return Named(curve=curve, facts=facts, about={"theorem": theorem})


def _on_sample(curve: PrivacyCurve, sample: Mapping[str, Fraction]) -> tuple[PrivacyCurve, str]:
    """The curve on a sample, and the module that proves it."""
    match sample:
        case {"size": size, "out_of": records} if len(sample) == 2:
            found = curve.sampled_without_replacement(
                size=to_count("size", size), out_of=to_count("out_of", records)
            )
            return found, "without_replacement"
        case {"rate": rate} if sample.keys() <= {"rate", "replaced"}:
            replaced = sample.get("replaced", Fraction(0))
            require(replaced in {0, 1}, "replaced", replaced, "0 or 1")
            found = curve.poisson_sampled(rate=rate, replaced=bool(replaced))
            return found, "poisson_replaced" if replaced else "poisson_sampled"
        case {"users": users} if len(sample) == 1:
            return curve.shuffled(users=to_count("users", users)), "shuffled"
    raise ParameterError(
        "sample",
        " ".join(f"{key}={short_string(value)}" for key, value in sample.items()),
        "a rate, with replaced=1 or without, or a size and out_of, or users",
    )


def _promised(guarantee: Guarantee, curve: PrivacyCurve, facts: Facts) -> Named:
    return Named(
        curve=curve,
        facts=facts,
        about={
            "theorem": guarantee.theorem,
            "protects": guarantee.adjacency.unit,
            "randomness": guarantee.randomness,
            "data_choice": guarantee.data_choice,
        },
        guarantee=guarantee,
    )


def read(texts: Sequence[str]) -> list[Written]:
    """Releases as they stand on the command line, the names of files among them.

    A file of releases ends in .csv or .toml, a certificate of one in .json, or is that of a folder.
    It isn't verified.

    Raises
    ------
    ConfigurationError
        Which names the release, or the file and its line, and what is wrong there.
    """
    releases: list[Written] = []
    for text in texts:
        match Path(text).suffix:
            case ".csv" | ".toml" as ending:
                found = list((_read_csv if ending == ".csv" else _read_toml)(Path(text)))
                if not found:
                    raise ConfigurationError(f"{text}: has no release.")
                releases += found
            case ".json":
                releases.append(_read_certificate(Path(text)))
            case _ if Path(text).is_dir():
                releases.append(_read_certificate(Path(text)))
            case ending if _FILE.fullmatch(text):
                raise ConfigurationError(
                    f"{text}: files of releases end in .csv or .toml, a certificate in .json. "
                    + did_you_mean(ending, _ENDINGS)
                )
            case _:
                releases.append(_read_text(text))
    return releases


def total_of(releases: Sequence[Written], *, same_records: bool) -> Named:
    """All of them together: their exact privacy losses, added.

    Raises
    ------
    ParameterError
        If two protect different units, or no composition is proven for them. A noise alone doesn't
        say what it protects, and counts for the same people as the others. Beside releases of
        which a record is replaced it is refused: its sensitivity could be what a record adds.
    """
    mechanisms: list[Guarantee] = []
    for each in releases:
        if each.what.guarantee is not None:
            rule = f"at most {_MOST_MECHANISMS} of a mechanism"
            require(each.count <= _MOST_MECHANISMS, "count", each.count, rule)
            mechanisms += [each.what.guarantee] * each.count
    losses = [pair for each in releases if not each.what.guarantee for pair in each.curve.losses()]
    together: Guarantee | None = None
    about: dict[str, str] = {"theorem": THEOREM}
    adjacencies = [each.what.curve.adjacency for each in releases if not each.what.guarantee]
    if mechanisms:
        together = compose(*mechanisms, same_records=same_records)
        losses += together.curve.losses()
        adjacencies.append(together.adjacency)
        about = {
            "theorem": together.theorem,
            "randomness": together.randomness,
            "data_choice": together.data_choice,
        }
    stated = [adjacency for adjacency in adjacencies if adjacency is not None]
    adjacency = common_adjacency(stated) if stated else None
    for each in releases if isinstance(adjacency, Replace | Record) else ():
        if each.what.guarantee is None and each.curve.adjacency is None:
            way_out = _REPLACED if isinstance(adjacency, Replace) else _IN_PYTHON
            raise ConfigurationError(
                f"{each.text}: next to releases for which a record is replaced, state the kind "
                f"of its sensitivity: {way_out}"
            )
    if adjacency is not None:
        about["protects"] = adjacency.unit
    curve = Composed(losses=tuple(losses), adjacency=adjacency)
    promise = replace(together, curve=curve) if together else None
    return Named(curve=curve, facts={}, about=about, guarantee=promise)


def _made(name: str, texts: Mapping[str, str]) -> Certifiable:
    # Imports every installed mechanism: a noise distribution's accountant doesn't wait for that.
    from dpverify.catalogue import families
    from dpverify.certificate.named import named_mechanism

    if name not in families():
        hint = did_you_mean(name, [*DISTRIBUTIONS, POINT, *families()])
        raise ConfigurationError(f"there is no mechanism {name}. {hint}")
    return named_mechanism(name, texts)


def _read_text(text: str) -> Written:
    with _at(f"release {text!r}"):
        found = _WRITTEN.fullmatch(text)
        if found is None or not all("=" in pair for pair in found["parameters"].split()):
            raise ConfigurationError('must be written as "10 x gaussian sigma=4".')
        return _written(found["count"] or "1", found["name"], found["parameters"].split())


def _written(count: str, name: str, parameters: Sequence[str]) -> Written:
    release = Written(
        text=" ".join([name, *parameters]),
        what=named(name, key_values(parameters)),
        count=_count(count),
    )
    if release.what.guarantee is None:
        release.curve.losses()  # what doesn't compose is refused where it stands
    return release


def _count(text: str) -> int:
    require("." not in text, "count", text, "a whole number without a point", _THOUSAND)
    return to_count("count", exact_number("count", text))


def _read_certificate(path: Path) -> Written:
    from dpverify.certificate.checks import certificate_path, read_certificate
    from dpverify.certificate.schema import Certificate

    fields = read_certificate(certificate_path(path))
    with _at(str(path)):
        try:
            certificate = Certificate.model_validate(fields)
        except ValueError:
            raise ConfigurationError("is not the certificate of a release.") from None
        guarantee = certificate.guarantee()
        return Written(text=str(path), what=_promised(guarantee, guarantee.curve, {}))


def _read_csv(path: Path) -> Iterator[Written]:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ConfigurationError(f"{path}: is larger than {MAX_BYTES} bytes.")
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file, strict=True)
            columns = [name.strip() for name in next(rows, [])]
            with _at(f"{path}, line 1"):
                _check_columns(columns)
            for row in rows:
                if not any(cell.strip() for cell in row):
                    continue
                with _at(f"{path}, line {rows.line_num}"):
                    if len(row) != len(columns):
                        raise ConfigurationError(f"has {len(row)} cells, not {len(columns)}.")
                    cells = {name: cell.strip() for name, cell in zip(columns, row, strict=True)}
                    yield _of_cells(cells, cells.get("parameters", "").split())
    except FileNotFoundError:
        raise ConfigurationError(f"{path}: there is no such file.") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigurationError(f"{path}: can't be read: {error}.") from None


def _check_columns(columns: Sequence[str]) -> None:
    if len(columns) == 1 and (marks := [mark for mark in ";\t|" if mark in columns[0]]):
        raise ConfigurationError(f"cells are separated by commas, and not by {marks[0]!r}.")
    if "mechanism" not in columns:
        raise ConfigurationError(f"the columns are {', '.join(_COLUMNS)}; mechanism is missing.")
    for number, name in enumerate(columns):
        if name not in _COLUMNS:
            raise ConfigurationError(f"{name!r} is no column. {did_you_mean(name, _COLUMNS)}")
        if name in columns[:number]:
            raise ConfigurationError(f"there are two columns {name}.")


def _read_toml(path: Path) -> Iterator[Written]:
    tables = read_toml(path, parse_float=Decimal)
    releases = tables.pop("releases", None)
    if tables or not isinstance(releases, list):
        raise ConfigurationError(
            f"{path}: write a [[releases]] for each release, and nothing else."
        )
    for number, release in enumerate(releases):
        with _at(f"{path}: releases[{number}]"):
            if not isinstance(release, dict):
                raise ConfigurationError("is not a table.")
            _check_columns(list(release))
            cells = dict(release)
            parameters = cells.pop("parameters", {})
            for key, value in cells.items():
                if isinstance(value, list | dict):
                    raise ConfigurationError(f"{key} must be text, a number or a date.")
            if not isinstance(parameters, dict):
                raise ConfigurationError("parameters must be a table, such as { sigma = 4 }.")
            yield _of_cells({key: str(value) for key, value in cells.items()}, _flat(parameters))


def _flat(table: Mapping[str, Any], prefix: str = "") -> list[str]:
    """``domain.low=0`` for a table in a table."""
    pairs: list[str] = []
    for key, value in table.items():
        if isinstance(value, dict):
            pairs += _flat(value, f"{prefix}{key}.")
        else:
            pairs.append(f"{prefix}{key}={value}")
    return pairs


def _of_cells(cells: Mapping[str, str], parameters: Sequence[str]) -> Written:
    for column in ("mechanism", "count"):
        if cells.get(column) == "":
            raise ConfigurationError(f"{column} is empty.")
    found = _written(cells.get("count", "1"), cells["mechanism"], parameters)
    return replace(found, label=cells.get("label", ""), date=cells.get("date", ""))


@contextmanager
def _at(place: str) -> Iterator[None]:
    """Say where it is in what a user wrote that an error is about."""
    try:
        yield
    except DPVerifyError as error:
        raise ConfigurationError(f"{place}: {error}") from None
