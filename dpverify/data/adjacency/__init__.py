"""Who is a neighbour of whom: the relation that a guarantee protects.

Each adjacency is frozen data. `unit` says in words whose privacy it is, and stands in the first
line of a certificate; `relates` decides for two data sets, exactly for the numbers that they hold.
`of` says what a function is a function of, where the adjacency leaves no choice: a graph, a data
matrix and rows that come and go are data sets; one record may change alone or among others, and
then whoever audits a function declares it.

`moves` has those in which values move and the rows stay: they replace and never add, so the number
of rows is public, and releases of this package are made under them. `rows` has those in which rows
come, go or change places: data sets of any length, of any rows. They are for audits.
"""

from __future__ import annotations

from dpverify.data.adjacency.base import Adjacency, Choose, Of, shuffled
from dpverify.data.adjacency.groups import Group
from dpverify.data.adjacency.moves import (
    L2,
    Attribute,
    BitFlip,
    Edge,
    Items,
    L1Ball,
    LInf,
    Moves,
    Record,
    Row,
    largest_move,
)
from dpverify.data.adjacency.rows import AddRemove, Permutation, Replace

__all__ = [
    "L2",
    "AddRemove",
    "Adjacency",
    "Attribute",
    "BitFlip",
    "Choose",
    "Edge",
    "Group",
    "Items",
    "L1Ball",
    "LInf",
    "Moves",
    "Of",
    "Permutation",
    "Record",
    "Replace",
    "Row",
    "largest_move",
    "shuffled",
]
