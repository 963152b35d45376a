"""What somebody answered of a certificate's hazards after its release."""

from __future__ import annotations

import hashlib
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from dpverify.certificate.configuration import Line, OwnerSettings
from dpverify.certificate.fields import Sha256

__all__ = ["Answered"]


class Answered(BaseModel):
    """What one person answered at one time.

    Attributes
    ----------
    after : SHA-256 of the lines before this one
    by : who answers, in their own words
    at : when, by the clock of their machine: UTC, to the second
    answers : by hazard
    keyid : `key_id` of the key that signed it
    holds : whether the signature holds under a key that was given; None where none was
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    after: Sha256 = hashlib.sha256().hexdigest()
    by: Line
    at: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]
    answers: Annotated[dict[str, OwnerSettings], Field(min_length=1)]
    keyid: str = Field(default="", exclude=True)
    holds: bool | None = Field(default=None, exclude=True)
