"""The command line, as ``python -m dpverify``."""

from __future__ import annotations

from dpverify.cli import main

if __name__ == "__main__":
    main()
