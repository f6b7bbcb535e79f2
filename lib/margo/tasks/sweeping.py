"""What classifiers do as something is varied: missing features, labels; and what their regions look like."""

from dataclasses import fields, replace

import numpy as np

from margo.classify import gmm, hybrid
from margo.classify.gmm import GmmOptions
from margo.classify.hybrid import HybridOptions
from margo.errors import MargoError
from margo.formats.tables import Table
from margo.tasks.classifying import error_percent, log_joint


def hide(x, fraction: float, rng) -> np.ndarray:
    """A copy of ``x`` with ``round(fraction D)`` features of every sample missing, at random ([R18] 4.3)."""
    x = x.copy()
    count = round(fraction * x.shape[1])
    chosen = rng.random(x.shape).argsort(axis=1)[:, :count]
    np.put_along_axis(x, chosen, np.nan, axis=1)
    return x


def boundary_plots(models: dict, table: Table, cells: int, points: int) -> list[dict]:
    """For each named model of two features its decision regions, under evenly chosen samples of ``table``."""
    if table.x.shape[1] != 2:
        raise MargoError(f"decision regions need samples of 2 features, found {table.x.shape[1]}")
    low, high = np.nanmin(table.x, axis=0), np.nanmax(table.x, axis=0)
    axes = [np.linspace(low[d], high[d], cells) for d in range(2)]
    grid = np.stack([axis.ravel() for axis in np.meshgrid(*axes)], axis=1)
    shown = np.linspace(0, len(table.x) - 1, min(points, len(table.x))).astype(int)
    plots = []
    for name, model in models.items():
        regions = log_joint(model, grid).argmax(axis=1).reshape(cells, cells)
        series = [
            {"name": f"class {label}", "style": "points", "x": table.x[rows, 0].round(3).tolist(),
             "y": table.x[rows, 1].round(3).tolist()}
            for c, label in enumerate(table.names) for rows in [shown[table.y[shown] == c]] if len(rows)
        ]  # fmt: skip
        region = {"values": regions.tolist(), "x": [low[0], high[0]], "y": [low[1], high[1]]}
        plots.append({"title": f"Decision regions of {name}", "kind": "scatter", "series": series, "region": region})
    return plots


def missing_curves(models: dict, table: Table, options, step):
    """``(curves, plots)``: mean error of each model for each part of missing features, on the same gaps for all."""
    if options.samples and options.samples < len(table.y):
        rows = np.linspace(0, len(table.y) - 1, options.samples).astype(int)
        table = Table(table.x[rows], table.y[rows], table.names)
    curves: dict[str, list] = {name: [] for name in models}
    for fraction in step.progress(options.fractions, what="parts missing"):
        draws = [hide(table.x, fraction, np.random.default_rng([options.seed, n])) for n in range(options.repeats)]
        for name, model in models.items():
            errors = [100.0 * float((log_joint(model, x).argmax(axis=1) != table.y).mean()) for x in draws]
            curves[name].append({"missing": fraction, "error": float(np.mean(errors)), "sd": float(np.std(errors))})
    series = [{"name": name, "x": [point["missing"] for point in points], "y": [point["error"] for point in points]}
              for name, points in curves.items()]  # fmt: skip
    plot = {"title": "Error with missing features", "kind": "line", "x_label": "part of features missing",
            "y_label": "error (%)", "series": series}  # fmt: skip
    return {"samples": len(table.y), "repeats": options.repeats, "curves": curves}, [plot]


def label_curves(train: Table, test: Table, options, step):
    """``(rows, plots)``: errors of supervised and semi-supervised hybrid training for each number of labels."""
    base = HybridOptions(**{field.name: getattr(options, field.name) for field in fields(HybridOptions)})
    rows = []
    for count in options.labels:
        row = {"labels": count, "supervised": [], "semi_supervised": []}
        for draw in range(options.draws):
            rng = np.random.default_rng([options.seed, draw])
            shown = choose_labels(train.y, count, rng)
            known = train.x[shown], train.y[shown]
            start, _ = gmm.fit(*known, GmmOptions(covariance="full", ridge=options.start_ridge), rng)
            hidden = np.full(len(train.y), -1)
            hidden[shown] = train.y[shown]
            # As many steps as with all samples: small batches over the few ([R18] 4.4).
            batch = max(1, round(base.batch * count / len(train.y)))
            few, _ = hybrid.fit(start, *known, replace(base, batch=batch), options.seed)
            many, _ = hybrid.fit(start, train.x, hidden, base, options.seed)
            row["supervised"].append(error_percent(few, test))
            row["semi_supervised"].append(error_percent(many, test))
            step.say(f"{count} labels, draw {draw}: supervised {row['supervised'][-1]:.2f} %, "
                     f"semi-supervised {row['semi_supervised'][-1]:.2f} %")  # fmt: skip
        rows.append(row)
    counts = [row["labels"] for row in rows]
    series = [{"name": key.replace("_", "-"), "x": counts, "y": [float(np.mean(row[key])) for row in rows]}
              for key in ("supervised", "semi_supervised")]  # fmt: skip
    return rows, [{"title": "Error with few labels", "kind": "line", "x_label": "labelled samples", "x_log": True,
                   "y_label": "error (%)", "series": series}]  # fmt: skip


def choose_labels(y, count: int, rng) -> np.ndarray:
    """``count`` samples, at least one of each class, at random."""
    classes = np.unique(y)
    if not len(classes) <= count <= len(y):
        raise MargoError(f"{count} labels asked for; expected {len(classes)} (one a class) to {len(y)}")
    order = rng.permutation(len(y))
    first = np.array([order[np.argmax(y[order] == c)] for c in classes])
    rest = order[~np.isin(order, first)][: count - len(first)]
    return np.concatenate([first, rest])
