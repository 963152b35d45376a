"""The guarantee of a certified release, rebuilt from the inputs that its certificate holds."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from dpverify.accounting.curves.approximate_dp import ApproxDP
from dpverify.certificate.build import build
from dpverify.certificate.schema import Certificate
from dpverify.errors import CertificateError, ParameterError
from dpverify.guarantee import Guarantee
from dpverify.ledger.reliance import relied_on

__all__ = ["rebuilt_guarantee"]


def rebuilt_guarantee(certificate: Certificate) -> Guarantee:
    """What a certified release guarantees, with a curve that composes.

    Nothing is taken over from the bounds that the certificate states, nor verified.

    Raises
    ------
    CertificateError
        If nothing was released.
    ConfigurationError
        If a statement that the guarantee stands on fails its check.
    """
    if certificate.release is None:
        raise CertificateError("nothing was released, and so nothing composes.")
    inputs = certificate.inputs
    guarantee = build(inputs).guarantee()
    relied_on(inputs.mechanism, guarantee)
    try:
        guarantee.curve.losses()
    except ParameterError:
        # A curve may be all that a mechanism knows. Its certified point has a worst mechanism.
        point = Fraction(inputs.epsilon)
        leak = Fraction(guarantee.curve.delta_at(point).upper)
        guarantee = replace(guarantee, curve=ApproxDP(epsilon=point, delta=leak))
    return guarantee
