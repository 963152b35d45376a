"""Opacus: steps of DP-SGD on a model of one weight, whose value is the output.

The claim is what the library's own accountant says after the steps, at a δ of ours. One row comes
or goes. All noise is drawn by torch's generator, seeded by the system's entropy.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from opacus import PrivacyEngine
from opacus.optimizers import AdaClipDPOptimizer
from torch.utils.data import DataLoader, TensorDataset

from dpverify.data.adjacency import AddRemove
from dpverify_audits.libraries.entry import Entry, claimed

__all__ = ["entries"]

_DELTA = 0.001
_FEW = [(1.0, 0.0), (-1.0, 0.0), (0.5, 0.0)]
_MORE = [*_FEW, (9.0, 9.0)]
_ONE = [(0.0, 0.0)]
_GHOST = {"grad_sample_mode": "ghost"}
_QUANTILE = {
    "clipping": "adaptive",
    "target_unclipped_quantile": 0.5,
    "clipbound_learning_rate": 0.2,
    "min_clipbound": 1e-3,
    "max_clipbound": 1e3,
    "unclipped_num_std": 2.02,
}
_MEAN = "one step by the mean loss"
_COLUMN = "one step, clipped fast, losses as a column"
_ADAPTIVE = "one step, clipped adaptively, and the next bound"


def _trained(
    rows: Any,
    *,
    batch: int,
    sigma: float,
    loss: str = "sum",
    shape: tuple[int, ...] = (-1,),
    **options: Any,
) -> tuple[Any, PrivacyEngine]:
    """Train for one epoch from weights of 0; return the weights, and who has accounted for it.

    Losses of rows have this shape, where -1 is for their number. The next bound is told beside the
    weights where it is chosen by a noisy count.
    """
    x, y = torch.tensor(rows, dtype=torch.float32).split(1, dim=1)
    model = torch.nn.Linear(1, 1)
    for parameter in model.parameters():
        torch.nn.init.zeros_(parameter)
    engine = PrivacyEngine()
    criterion = torch.nn.MSELoss(reduction=loss)
    ghost = {"criterion": criterion} if options.get("grad_sample_mode") == "ghost" else {}
    module, optimizer, *rest, loader = engine.make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
        data_loader=DataLoader(TensorDataset(x, y), batch_size=min(batch, len(rows))),
        noise_multiplier=sigma,
        loss_reduction=loss,
        **{"max_grad_norm": 1.0, **options, **ghost},
    )
    for inputs, targets in loader:
        optimizer.zero_grad()
        told, true = module(inputs).reshape(shape), targets.reshape(shape)
        (rest[0] if rest else criterion)(told, true).backward()
        optimizer.step()
    weights = [float(each.detach().sum()) for each in model.parameters()]
    adaptive = isinstance(optimizer, AdaClipDPOptimizer)
    return [*weights, *([float(optimizer.max_grad_norm)] if adaptive else [])], engine


def _weights(train: Callable[[Any], Any], rows: Any) -> Any:
    return train(rows)[0]


def entries() -> Iterator[Entry]:
    """All of them."""
    warnings.filterwarnings("ignore", module="opacus|torch")
    torch.set_num_threads(1)
    trainings: tuple[tuple[str, dict[str, Any], Any], ...] = (
        ("one step, of all rows", {"batch": 9}, (_FEW, _MORE)),
        (
            "one step, clipped by layer",
            {"batch": 9, "clipping": "per_layer", "max_grad_norm": [0.6, 0.8]},
            (_FEW, _MORE),
        ),
        (
            "one step, clipped fast (mended: pull request 664)",
            {"batch": 9, **_GHOST},
            (_FEW, _MORE),
        ),
        (_COLUMN, {"batch": 9, "shape": (-1, 1), **_GHOST}, (_FEW, _MORE)),
        ("two steps, each of half of the rows", {"batch": 2}, (_FEW, _MORE)),
        (_MEAN, {"batch": 9, "loss": "mean"}, (_ONE, [*_ONE, (0.0, 0.0)])),
        (_ADAPTIVE, {"batch": 9, **_QUANTILE}, (_ONE, [*_ONE, (9.0, 9.0)])),
    )
    for name, options, pair in trainings:
        weak = name in (_MEAN, _ADAPTIVE)
        known, example = _SHOWN.get(name, ("", ""))
        train: Callable[[Any], Any] = partial(_trained, sigma=4.0 if weak else 1.0, **options)
        yield Entry(
            name=name,
            reading="get_epsilon(delta) of the PrivacyEngine after training; one row comes or goes",
            function=partial(_weights, train),
            claim=claimed(train(pair[0])[1].get_epsilon(_DELTA), _DELTA),
            adjacency=AddRemove(),
            pairs=(pair,),
            draws=1000 if weak else 200,
            known=known,
            example=example,
        )


_BY_ROWS = """\
import torch, opacus
for rows in (1, 2):  # one row is added; the loss is 0, so that each step is noise alone
    net, data, steps = torch.nn.Linear(1, 1), torch.zeros(rows, 1), []
    net, sgd, _ = opacus.PrivacyEngine().make_private(
        module=net, optimizer=torch.optim.SGD(net.parameters(), lr=1.0), noise_multiplier=4.0,
        data_loader=torch.utils.data.DataLoader(data, rows), max_grad_norm=1.0)
    for _ in range(500):
        sgd.zero_grad(), (0 * net(data)).mean().backward(), sgd.step()
        steps.append(net._module.bias.grad.item())
    print(rows, "rows: deviation of a step", torch.tensor(steps).std())
"""

_UNCLIPPED = """\
import torch, opacus
for shape in ((-1,), (-1, 1)):  # the shape of the losses of four rows
    net, x, y = torch.nn.Linear(1, 1), torch.ones(4, 1), torch.tensor([[0.0], [0.0], [0.0], [9.0]])
    torch.nn.init.zeros_(net.weight), torch.nn.init.zeros_(net.bias)  # three rows fit, one doesn't
    net, _, loss, _ = opacus.PrivacyEngine().make_private(
        module=net, optimizer=torch.optim.SGD(net.parameters(), lr=1.0), noise_multiplier=0.0,
        criterion=torch.nn.MSELoss(reduction="sum"), loss_reduction="sum", max_grad_norm=1.0,
        data_loader=torch.utils.data.DataLoader(x, 4), grad_sample_mode="ghost")
    loss(net(x).reshape(shape), y.reshape(shape)).backward()
    print("clipped to 1:", net._module.weight.grad.item())
"""

_BY_SIZE = """\
import torch, opacus
for rows in ([[0.0]], [[0.0], [9.0]]):  # gradients of the rows: one is added, and is clipped
    weight, bounds = torch.nn.Parameter(torch.zeros(1)), []
    for _ in range(500):
        sgd = opacus.optimizers.AdaClipDPOptimizer(torch.optim.SGD([weight]), noise_multiplier=4.0,
            expected_batch_size=1, max_grad_norm=1.0, min_clipbound=0.0, max_clipbound=1e9,
            target_unclipped_quantile=0.5, clipbound_learning_rate=0.2, unclipped_num_std=2.02)
        weight.grad_sample = torch.tensor(rows)
        bounds.append((sgd.step(), sgd.max_grad_norm.log().item())[1])
    print(len(rows), "rows: deviation of the next bound's log", torch.tensor(bounds).std())
"""

_SHOWN = {
    _MEAN: ("Opacus issues 571 and 819: the mean is by the number of rows", _BY_ROWS),
    _COLUMN: ("new: docs/reports/opacus.md", _UNCLIPPED),
    _ADAPTIVE: (
        "by convention: beside fast clipping its code takes the batch's size for public",
        _BY_SIZE,
    ),
}
