"""The browser that opens pages in tests, where the machine has one."""

from __future__ import annotations

import shutil

__all__ = ["CHROMIUM"]

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
