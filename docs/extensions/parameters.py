"""Reads docstring sections of the form ``name : what it is``, which our numpydoc sections have.

Types are in the annotations, so a docstring doesn't repeat them: what griffe takes for the type is
the description, and the type is the annotation's.
"""

from __future__ import annotations

from typing import Any

from griffe import Alias, DocstringSectionKind, Extension, Object, get_logger

__all__ = ["DescribedParameters"]

_FIELDS = {
    DocstringSectionKind.parameters,
    DocstringSectionKind.attributes,
    DocstringSectionKind.other_parameters,
}
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
                    if not item.description:
                        item.description = str(item.annotation or "")
                        item.annotation = _annotation(obj, item.name)
        obj.docstring.__dict__["parsed"] = sections


def _annotation(obj: Object, name: str) -> Any:
    if obj.is_function and name in obj.parameters:  # type: ignore[attr-defined]
        return obj.parameters[name].annotation  # type: ignore[attr-defined]
    member = obj.members.get(name)
    return getattr(member, "annotation", None)
