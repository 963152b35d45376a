"""Privacy accounting and verification.

A mechanism makes a claim, the accountant proves it, the auditor attacks it, and a certificate
records both so that anyone can check it again. Importing this package loads none of its parts:
import the ones you need, for example ``from dpverify.accounting import sigma_gaussian``.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
