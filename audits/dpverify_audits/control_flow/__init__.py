"""Correct mechanisms of every kind of control flow, which no audit may accuse beyond its level.

Most have a broken twin beside them, so that an audit which is blind to them shows. They are numpy
functions, as users write them: doubles, loops, branches, generators of their own. The precision
audit, which is about the doubles, accuses many of them, and rightly so; it is left out here.
"""

from dpverify_audits.control_flow.adaptive import CASES as ADAPTIVE
from dpverify_audits.control_flow.case import Case, Function
from dpverify_audits.control_flow.noise import CASES as NOISE
from dpverify_audits.control_flow.selection import CASES as SELECTION

__all__ = ["CASES", "Case", "Function"]

CASES: tuple[Case, ...] = (*NOISE, *SELECTION, *ADAPTIVE)
"""All of them."""
