"""Formulas in LaTeX, as MathML: browsers show it without a script, and nothing is fetched."""

from __future__ import annotations

from typing import Any

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig

__all__ = ["displayed", "on_config"]


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Give blocks of the language ``math`` to `displayed`."""
    fence = {"name": "math", "class": "formula", "format": displayed}
    config.mdx_configs.setdefault("pymdownx.superfences", {})["custom_fences"] = [fence]
    return config


def displayed(source: str, *_: Any, **__: Any) -> str:
    """Each line of a block as a formula of its own."""
    lines = [convert(line, display="block") for line in source.strip().splitlines()]
    return f'<div class="formula">{"".join(lines)}</div>'
