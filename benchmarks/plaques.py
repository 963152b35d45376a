"""What hangs beside an exhibit of the museum: the mistake, what it leaks, and links to sources."""

from __future__ import annotations

import re

from dpverify_audits.museum import AccountantExhibit, AuditorExhibit, Exhibit

__all__ = ["linked", "plaque"]

_REPOSITORIES = {
    "ADADP": "DPBayes/ADADP",
    "autodp": "yuxiangw/autodp",
    "DataSynthesizer": "DataResponsibly/DataSynthesizer",
    "diffprivlib": "IBM/differential-privacy-library",
    "dpart": "hazy/dpart",
    "dpgan": "illidanlab/dpgan",
    "dpmm": "sassoftware/dpmm",
    "google": "google/differential-privacy",
    "jax_privacy": "google-deepmind/jax_privacy",
    "mbi": "ryan112358/mbi",
    "mlforhealthlabpub": "vanderschaarlab/mlforhealthlabpub",
    "NVFlare": "NVIDIA/NVFlare",
    "Opacus": "meta-pytorch/opacus",
    "OpenDP": "opendp/opendp",
    "private-transformers": "lxuechen/private-transformers",
    "programming-dp": "uvm-plaid/programming-dp",
    "prv_accountant": "microsoft/prv_accountant",
    "PySyft": "OpenMined/PySyft",
    "SmartNoise Core": "opendp/smartnoise-core",
    "SmartNoise SDK": "opendp/smartnoise-sdk",
    "SPRINT_gan": "greenelab/SPRINT_gan",
    "synthcity": "vanderschaarlab/synthcity",
    "tensorflow-privacy": "tensorflow/privacy",
    "WICG": "WICG/attribution-reporting-api",
}
_PLACES = re.compile(
    rf"(?P<library>{'|'.join(map(re.escape, _REPOSITORIES))})"
    r"|arXiv[: ](?P<paper>\d{4}\.\d{4,5})"
    r"|(?P<kind>issues?|pull requests?) (?P<first>\d+)(?: and (?P<second>\d+))?"
)


def linked(source: str) -> str:
    """A source with links to its papers, and to the issues of the library that it names before.

    Examples
    --------
    >>> linked("OpenDP 0.16; issue 2911")
    'OpenDP 0.16; issue [2911](https://github.com/opendp/opendp/issues/2911)'
    """
    repository = ""

    def link(found: re.Match[str]) -> str:
        nonlocal repository
        if library := found["library"]:
            repository = _REPOSITORIES[library]
            return library
        if paper := found["paper"]:
            return f"[arXiv:{paper}](https://arxiv.org/abs/{paper})"
        if not repository:
            return found[0]
        numbers = [number for number in (found["first"], found["second"]) if number]
        where = "issues" if found["kind"].startswith("issue") else "pull"
        address = f"https://github.com/{repository}/{where}"
        links = " and ".join(f"[{number}]({address}/{number})" for number in numbers)
        return f"{found['kind']} {links}"

    return _PLACES.sub(link, source)


def plaque(exhibit: Exhibit | AccountantExhibit | AuditorExhibit) -> str:
    """Its name, the mistake, what leaks by it, and where that was published."""
    return f"- **{exhibit.name}.** {exhibit.mistake} *{exhibit.leak}* ({linked(exhibit.source)})"
