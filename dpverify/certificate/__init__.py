"""The certificate: model, making, rendering, re-verification."""
