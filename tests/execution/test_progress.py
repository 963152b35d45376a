"""What long calls say in a notebook, and that they are silent elsewhere."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

import dpverify as dpv
from dpverify.execution import progress
from dpverify.execution.progress import notebook_line, phases


class Notebook:
    """What IPython shows: one text for each line, as it was changed last, and all of them."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.shell = SimpleNamespace(config=config)
        self.lines: list[list[str]] = []

    def get_ipython(self) -> Any:
        return self.shell

    def display(self, data: dict[str, str], *, raw: bool, display_id: bool) -> Any:
        assert (raw, display_id) == (True, True)
        line = [data["text/plain"]]
        self.lines.append(line)

        def update(data: dict[str, str], *, raw: bool) -> None:
            assert raw
            line.append(data["text/plain"])

        return SimpleNamespace(update=update)


def opened(monkeypatch: pytest.MonkeyPatch, config: dict[str, Any]) -> Notebook:
    notebook = Notebook(config)
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    monkeypatch.setitem(sys.modules, "IPython.display", notebook)
    return notebook


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Notebook:
    return opened(monkeypatch, {"IPKernelApp": {}})


def test_a_phase_says_its_share_and_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 0.1, 5.0, 10.0, 40.0])
    monkeypatch.setattr(progress, "perf_counter", lambda: next(clock))
    told: list[str] = []
    advance = phases(told.append)("auditing", 400)
    for steps in (0, 0, 100, 300):  # the first comes too soon, of the next nothing is done
        advance(steps)
    assert told == [
        "auditing",
        "auditing: 25%, about 30 seconds left",
        "auditing: 100%, about 0 seconds left",
    ]


def test_one_line_ends_with_the_time_or_where_it_failed(notebook: Notebook) -> None:
    with notebook_line(wanted=True) as tell:
        tell("reading")
    with pytest.raises(ZeroDivisionError), notebook_line(wanted=True) as tell:
        raise ZeroDivisionError(tell("auditing"))
    assert notebook.lines == [["", "reading", "took 1 second"], ["", "auditing"]]


def noisy(record: Any, rng: Any) -> Any:
    return record + rng.laplace(size=record.shape)


def audited(**settings: Any) -> None:
    dpv.audit(
        noisy,
        epsilon=1,
        adjacency=dpv.Attribute(1),
        of="record",
        attributes=1,
        kinds=["black-box"],
        draws=100,
        workers=1,
        **settings,
    )


def test_an_audit_in_a_notebook(notebook: Notebook) -> None:
    audited()
    ((*told, end),) = notebook.lines
    assert "black-box" in told
    assert end.startswith("took ")
    heard: list[str] = []
    audited(progress=heard.append)  # whoever asks is told in place of the line
    assert ["", *heard] == told
    assert len(notebook.lines) == 1


def test_nothing_is_shown_where_no_notebook_is(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    terminal = opened(monkeypatch, {"TerminalIPythonApp": {}})
    audited()
    monkeypatch.delitem(sys.modules, "IPython")
    audited()
    assert not terminal.lines
    assert capfd.readouterr() == ("", "")
