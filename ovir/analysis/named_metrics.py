"""The metrics by their names."""

from __future__ import annotations

import re

import numpy as np

from ovir.analysis.metrics import ERRORS, ErrorMetric, MetricBase, Top
from ovir.analysis.set_metrics import AveragePrecision, MeanIou
from ovir.diagnostics.errors import InputError, require_packages
from ovir.diagnostics.wording import did_you_mean

NAMES = ("top1", "top5", *ERRORS, "map", "map50", "miou")
"""The metrics; any other number of classes can stand in ``top5``."""
_OVERLAPS = {"map": tuple(np.linspace(0.5, 0.95, 10).tolist()), "map50": (0.5,)}


def metric_of(
    name: str,
    *,
    peak: float | None = None,
    columns: tuple[str, ...] | None = None,
    size: tuple[float, float] | None = None,
) -> MetricBase:
    """Return a metric by its name; raise InputError.

    ``peak`` is for ``psnr`` (``ErrorMetric``), ``columns`` and ``size`` are for boxes (``AveragePrecision``).
    """
    if match := re.fullmatch(r"top([1-9]\d*)", name):
        return Top(int(match[1]))
    if name in _OVERLAPS:
        require_packages(f"the metric {name}", "metrics", "pycocotools")
        return AveragePrecision(name, _OVERLAPS[name], columns, size or (1.0, 1.0))
    if name == MeanIou.name:
        return MeanIou()
    if name not in ERRORS:
        hint = did_you_mean(name, NAMES)
        raise InputError.usage(f"there is no metric '{name}'; expected {', '.join(NAMES)}", hint=hint)
    return ErrorMetric(name, *ERRORS[name], peak)
