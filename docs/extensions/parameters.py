"""Reads docstring sections of the form ``name : what it is``, which our numpydoc sections have.

Types are in the annotations, so a docstring doesn't repeat them: what griffe takes for the type is
the description, or its first line, and the type is the annotation's. A line is a type after all
where it is short and a sentence of its own stands below it.
"""

from __future__ import annotations

from typing import Any

from griffe import Alias, DocstringSectionKind, Extension, Object, get_logger

__all__ = ["DescribedParameters"]

_RESULTS = {DocstringSectionKind.returns, DocstringSectionKind.yields}
_FIELDS = {
    DocstringSectionKind.parameters,
    DocstringSectionKind.attributes,
    DocstringSectionKind.other_parameters,
    *_RESULTS,
}
_LONG = 60  # characters; no type is longer
get_logger("griffe.docstrings").setLevel("ERROR")


class DescribedParameters(Extension):
    """Exchange description and type where only one of them is written."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Parse the docstring of one object, and mend its sections."""
        if isinstance(obj, Alias) or obj.docstring is None:
            return
        sections = obj.docstring.parse("numpy", warnings=False)
        for section in sections:
            if section.kind in _FIELDS:
                for item in section.value:
                    line = str(item.annotation or "")
                    if not _is_type(line, item.description):
                        item.description = f"{line}\n{item.description}".strip()
                        item.annotation = _annotation(obj, item.name)
            if section.kind in _RESULTS and not any(item.name for item in section.value):
                # A line each, of one result.
                section.value[0].description = "\n".join(item.description for item in section.value)
                del section.value[1:]
        obj.docstring.__dict__["parsed"] = sections


def _is_type(line: str, below: str) -> bool:
    return below[:1].isupper() and len(line) <= _LONG and not line.endswith(".")


def _annotation(obj: Object, name: str) -> Any:
    if obj.is_function and not name:
        return obj.returns  # type: ignore[attr-defined]
    if obj.is_function and name in obj.parameters:  # type: ignore[attr-defined]
        return obj.parameters[name].annotation  # type: ignore[attr-defined]
    member = obj.members.get(name)
    return getattr(member, "annotation", None)
