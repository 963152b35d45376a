"""The certificate: model, making, rendering, re-verification, use.

`certify.certify`, `verify.verify` and `open_release.open_release` are what callers need.
"""
