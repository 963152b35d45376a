"""How tests are collected; what they share is in `tests.helpers.fixtures`."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator
from contextlib import suppress
from importlib import import_module

import pytest
from _pytest.runner import runtestprotocol

# One thread for linear algebra: each core has a process of its own already, and threads that wait
# for a core spin. It is read when numpy is first loaded; what tests start inherits it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def pytest_configure(config: pytest.Config) -> None:
    """Load what tests share where they run: not in the process that hands them out to others."""
    if hasattr(config, "workerinput") or config.getoption("dist", "no") == "no":
        config.pluginmanager.import_plugin("tests.helpers.fixtures")


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """What is collected stays until the end: no collection of garbage looks at it.

    Of two workers one imports the tests from their end: each half is rewritten by one of them.
    """
    gc.disable()
    if os.environ.get("PYTEST_XDIST_WORKER") == "gw1":
        root = session.config.rootpath
        tests = (path for arg in session.config.args for path in (root / arg).rglob("test_*.py"))
        for path in sorted(tests, reverse=True):
            with suppress(Exception, pytest.skip.Exception):  # collecting it will say why
                import_module(".".join(path.relative_to(root).with_suffix("").parts))
    collected = yield
    gc.collect()  # classes that `slots` made again are still among the subclasses
    gc.freeze()
    gc.set_threshold(20_000)  # what a test leaves is little, and looked at less often
    gc.enable()
    return collected


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """What passes is told once: the process that hands tests out reads each of five messages.

    Where durations are asked for each phase is told, as without other processes.
    """
    if not hasattr(item.config, "workerinput") or item.config.getoption("durations"):
        return None
    reports = runtestprotocol(item, nextitem=nextitem, log=False)
    passed = all(report.passed for report in reports)
    for report in reports:
        if not passed or report.when == "call":
            item.ihook.pytest_runtest_logreport(report=report)
    return True
