"""Other people's libraries: their mechanisms as they stand, each with the claim as we read it.

A module a library, whose `entries` needs it installed. ``dpverify audit libraries --library
opendp`` audits them in the environment that has the library; `benchmarks.libraries` makes one for
each of them, and prints the scoreboard (``docs/libraries.md``).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module

from dpverify.errors import ConfigurationError, did_you_mean
from dpverify_audits.libraries.entry import Entry

__all__ = ["LIBRARIES", "SUITE", "Entry", "Libraries"]

LIBRARIES = {
    "opendp": "opendp",
    "diffprivlib": "diffprivlib",
    "python-dp": "pydp",
    "pipeline-dp": "pipeline_dp",
    "smartnoise-sql": "smartnoise_sql",
    "DataSynthesizer": "data_synthesizer",
    "pure-ldp": "pure_ldp",
    "multi-freq-ldpy": "multi_freq_ldpy",
    "ldp-toolbox": "ldp_toolbox",
    "trasgodp": "trasgodp",
    "eeprivacy": "eeprivacy",
    "diffpriv-pure": "diffpriv_pure",
    "dpmm": "dpmm",
    "tmlt-analytics": "tmlt_analytics",
    "opacus": "opacus",
    "jax-privacy": "jax_privacy",
    "smartnoise-synth": "smartnoise_synth",
}
"""What is audited, by the names of the package index: the module here that has its mechanisms."""


class Libraries:
    """The mechanisms of all libraries that are installed."""

    def __iter__(self) -> Iterator[Entry]:
        for library in LIBRARIES:
            with suppress(ConfigurationError):  # isn't installed
                yield from self.part(library)

    def part(self, library: str) -> list[Entry]:
        """The mechanisms of one library.

        Raises
        ------
        ConfigurationError
            If it isn't one of `LIBRARIES`, or isn't installed.
        """
        if library not in LIBRARIES:
            hint = did_you_mean(library, LIBRARIES)
            raise ConfigurationError(f"library {library} is not one of those audited here. {hint}")
        try:
            module = import_module(f"dpverify_audits.libraries.{LIBRARIES[library]}")
        except ImportError as error:
            raise ConfigurationError(f"library {library} isn't installed: {error}.") from error
        return list(module.entries())


SUITE = Libraries()
"""For ``dpverify audit libraries``."""
