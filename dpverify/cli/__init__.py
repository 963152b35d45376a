"""The command line: thin, and nothing is imported before it is needed."""

from __future__ import annotations

import io
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from dpverify._version import __version__
from dpverify.errors import DPVerifyError, did_you_mean
from dpverify.visible import escaped

__all__ = ["cli", "main"]

_COMMANDS = {
    "account": ("dpverify.cli.account", "What a noise level or a mechanism guarantees."),
    "answer": ("dpverify.cli.answer", "Answer hazards of a certificate after its release."),
    "audit": ("dpverify.cli.audit", "Attack what a mechanism claims."),
    "audit-scores": ("dpverify.cli.audit_scores", "Bound epsilon by scores in a file."),
    "budget": ("dpverify.cli.budget", "Keep a privacy budget, and spend from it."),
    "calibrate": ("dpverify.cli.account", "The noise that a guarantee needs."),
    "certify": ("dpverify.cli.certify", "Release data with a certificate."),
    "claims": ("dpverify.cli.claims", "Statements of the papers, checked by machine."),
    "compose": ("dpverify.cli.compose", "What several releases reveal together."),
    "design": ("dpverify.cli.design", "Choose parameters by exact errors."),
    "init": ("dpverify.cli.init", "Begin a configuration for a file."),
    "key": ("dpverify.cli.key", "Make a key to sign with."),
    "mechanisms": ("dpverify.cli.mechanisms", "List the mechanisms, or describe one."),
    "plan": ("dpverify.cli.plan", "What a release would protect, and be worth."),
    "register": ("dpverify.cli.register", "Write an entry for the registry of deployments."),
    "report": ("dpverify.cli.report", "Render a certificate's report again."),
    "sensitivity": ("dpverify.cli.sensitivity", "Sensitivity of a projection in a file."),
    "sign": ("dpverify.cli.sign", "Sign a certificate and its released file."),
    "verify": ("dpverify.cli.verify", "Check a certificate again."),
}


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            if name.startswith("-"):  # click says which option it doesn't know
                return None
            raise click.UsageError(
                f"there is no command {name}. {did_you_mean(name, _COMMANDS)}", ctx
            )
        module = import_module(_COMMANDS[name][0])
        command: click.Command = getattr(module, name.replace("-", "_"))
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in sorted(_COMMANDS.items())])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="dpverify", message="%(prog)s %(version)s")
def cli() -> None:
    """Privacy accounting and verification.

    Exit codes: 0 nothing found, 1 a violation or a failed verification, 2 usage or input error,
    3 inconclusive, 4 internal error.
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    _open_closed()
    _write_all()
    sys.exit(_run(arguments))


def _open_closed() -> None:
    """Open what the shell closed: Python has None there, and a file of ours would take its place.

    In their order, so that each gets its own descriptor, the lowest that is free.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115, PTH123  # until the exit


def _write_all() -> None:
    """Write as escapes what the encoding of a stream lacks, as Latin-1 does an exponent."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def _run(arguments: list[str] | None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    try:
        code: Any = cli.main(args=words, prog_name="dpverify", standalone_mode=False)
    except click.ClickException as error:
        shown = io.StringIO()
        error.show(shown)
        _tell(escaped(shown.getvalue().removesuffix("\n"), lines=True))
        return _failed(words, "UsageError", error.format_message(), error.exit_code)
    except (click.Abort, KeyboardInterrupt) as error:
        if isinstance(error.__context__, EOFError):  # as where a script signs with a passphrase
            text = "nobody can answer the question: stdin has ended."
            _tell(f"\ndpverify: {text}")
            return _failed(words, "UsageError", text, 2)
        text = "interrupted; an output is there whole, or as it was before."
        _tell(f"dpverify: {text}")
        return _failed(words, "Interrupted", text, 130)
    except DPVerifyError as error:
        _tell(escaped(f"dpverify: {error}"))
        for note in getattr(error, "__notes__", ()):  # lines of ours, to be copied
            _tell(escaped(note, lines=True))
        return _failed(words, type(error).__name__, str(error), error.exit_code)
    except MemoryError:
        text = "not enough memory for inputs of this size; no output is there by half."
        _tell(f"dpverify: {text}")
        return _failed(words, "MemoryError", text, 2)
    except SystemExit:  # click's own where nobody reads on; its code, 1, is a violation's
        return 128 + signal.SIGPIPE
    except OSError as error:
        text = _os_problem(error)
        _tell(escaped(f"dpverify: {text}"))
        return _failed(words, type(error).__name__, text, 2)
    except Exception as error:
        text = (
            f"internal error: {type(error).__name__}: {error}. "
            "Set DPVERIFY_TRACEBACK=1 for the details, and please report it."
        )
        _tell(escaped(f"dpverify: {text}"))
        if os.environ.get("DPVERIFY_TRACEBACK"):
            _tell(traceback.format_exc())
        return _failed(words, "InternalError", text, 4)
    return code if isinstance(code, int) else 0


def _tell(text: str) -> None:
    """Say it on stderr, if that can be written to: a second error would end in the code 1."""
    with suppress(OSError):
        click.echo(text, err=True)


def _os_problem(error: OSError) -> str:
    """What the system refused, of a file that has a name, of stdout, or of the folder."""
    if error.filename is not None:  # as a name too long
        return f"{error.filename}: {error.strerror}."
    try:
        Path.cwd()
    except FileNotFoundError:
        return "the working folder was removed: change to one that is there."
    return f"{error.strerror or error}. What was written or spent before stays so."


def _failed(words: Sequence[str], kind: str, message: str, code: int) -> int:
    """The exit code of a failure, which is said on stdout too where ``--json`` asks for that."""
    if "--json" in words:
        from dpverify.cli.output import emit_json

        command = next((word for word in words if word in _COMMANDS), "")
        error = {"kind": kind, "message": message, "exit_code": code}
        with suppress(OSError):
            emit_json(command, error, of="error")
    return code
