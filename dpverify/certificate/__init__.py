"""The certificate: model, making, rendering, re-verification, use.

`make.certify`, `verify.verify` and `reading.open_release` are what callers need.
"""
