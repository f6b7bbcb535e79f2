"""What classifiers do as something is varied: missing features, labels; and what their regions look like."""

import time
from dataclasses import fields, replace

import numpy as np

from margo.classify import gmm, hybrid
from margo.classify.gmm import GmmOptions
from margo.classify.hybrid import HybridOptions
from margo.errors import MargoError
from margo.formats.plots import picture_address, read_progress
from margo.formats.tables import Table
from margo.gaussian.covariances import Full, low_rank
from margo.runtime import record
from margo.tasks.classifying import error_percent, labelled, log_joint, read_model, read_set


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
    shown = np.linspace(0, len(table.x) - 1, min(points, len(table.x))).astype(int)
    series = [dots(f"class {label}", table.x[rows]) for c, label in enumerate(table.names)
              for rows in [shown[table.y[shown] == c]] if len(rows)]  # fmt: skip
    return [{"title": f"Decision regions of {name}", "kind": "scatter", "series": series,
             "region": region(lambda grid, model=model: log_joint(model, grid).argmax(axis=1), table.x, cells)}
            for name, model in models.items()]  # fmt: skip


def dots(name: str, x) -> dict:
    """Samples ``x[N, 2]`` as a series of a plot."""
    return {"name": name, "style": "points", "x": x[:, 0].round(3).tolist(), "y": x[:, 1].round(3).tolist()}


def cells_over(x, cells: int) -> tuple[list[np.ndarray], np.ndarray]:
    """The two axes [cells] over the range of ``x[N, 2]``, and their grid [cells^2, 2]."""
    axes = [np.linspace(np.nanmin(x[:, d]), np.nanmax(x[:, d]), cells) for d in range(2)]
    return axes, np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)


def region(decide, x, cells: int) -> dict:
    """The classes that ``decide`` gives a grid over the range of ``x[N, 2]``, as the background of a plot."""
    axes, grid = cells_over(x, cells)
    values = decide(grid).reshape(cells, cells).tolist()
    return {"values": values, **{name: [float(axis[0]), float(axis[-1])] for name, axis in zip("xy", axes)}}


def missing_curves(deciders: dict, table: Table, options, step):
    """``(curves, plots)``: mean error of each of ``deciders`` (samples to classes) for each part of missing features,
    on the same gaps for all, with the standard deviation over draws, and the milliseconds that a sample takes."""
    if options.samples and options.samples < len(table.y):
        rows = np.linspace(0, len(table.y) - 1, options.samples).astype(int)
        table = Table(table.x[rows], table.y[rows], table.names)
    curves: dict[str, list] = {name: [] for name in deciders}
    for decide in deciders.values():
        decide(hide(table.x[:1], 0.5, np.random.default_rng(0)))  # compiled before the clock runs
    for fraction in step.progress(options.fractions, what="parts missing"):
        draws = [hide(table.x, fraction, np.random.default_rng([options.seed, n])) for n in range(options.repeats)]
        for name, decide in deciders.items():
            began = time.process_time()
            errors = [100.0 * float((decide(x) != table.y).mean()) for x in draws]
            spent = 1000.0 * (time.process_time() - began) / (len(draws) * len(table.y))
            curves[name].append({"missing": fraction, "error": float(np.mean(errors)), "sd": float(np.std(errors)),
                                 "ms": spent})  # fmt: skip
    what = {"error": ("Error with missing features", "error (%)"),
            "ms": ("Time to classify with missing features", "CPU milliseconds a sample")}  # fmt: skip
    plots = [{"title": title, "kind": "line", "x_label": "part of features missing", "y_label": label,
              "series": [line(name, points, key) for name, points in curves.items()]}
             for key, (title, label) in what.items()]  # fmt: skip
    return {"samples": len(table.y), "repeats": options.repeats, "curves": curves}, plots


def line(name: str, points: list[dict], key: str) -> dict:
    """A curve of :func:`missing_curves` as a series of a plot; errors have a band of one standard deviation."""
    series = {"name": name, "x": [point["missing"] for point in points], "y": [point[key] for point in points]}
    return series | ({"sd": [point["sd"] for point in points]} if key == "error" and len(points) else {})


def deciders(folders, ranks, table: Table, step) -> dict:
    """Trained classifiers by the names of their folders; the first is there again for each of ``ranks``, its full
    covariances cut down to diagonal plus so many columns ([R18] Figure 3c)."""
    models = {folder.name: read_model(folder, step, table.names)[0] for folder in folders}
    first = next(iter(models.values()))
    for rank in ranks:
        cut = low_rank(Full(first.pool.covariances.dense()), rank, 1e-3)
        models[f"R = {rank}"] = replace(first, pool=replace(first.pool, covariances=cut))
    return {name: (lambda x, model=model: log_joint(model, x).argmax(axis=1)) for name, model in models.items()}


def settings_curves(options, step):
    """``(rows, plots)``: for every model the setting that it was trained with, its own or its start's, and measures of
    it on each set; models in folders of one name, but for what follows its last _, are one line."""
    tables = {name: labelled(read_set(options.data, name, step)) for name in options.sets}
    rows = []
    for folder in options.model:
        model, meta = read_model(folder, step, next(iter(tables.values())).names)
        row = {"line": folder.name.rpartition("_")[0] or folder.name, "value": setting_of(folder, options.setting)}
        for name, table in tables.items():
            row |= {f"{key}, {name}": value for key, value in measures(model, table, options).items()}
        step.say(f"{folder}: " + ", ".join(f"{key} {value:.4g}" for key, value in row.items() if key != "line"))
        rows.append(row)
    rows.sort(key=lambda row: row["value"])
    plots = []
    for key in options.measures:
        series = [{"name": f"{line}, {name}", "x": [row["value"] for row in rows if row["line"] == line],
                   "y": [row[f"{key}, {name}"] for row in rows if row["line"] == line]}
                  for line in dict.fromkeys(row["line"] for row in rows) for name in options.sets]  # fmt: skip
        plots.append({"title": f"{key.capitalize()} by {options.setting}", "kind": "line", "x_label": options.setting,
                      "y_label": UNITS[key], "x_log": options.log, "series": series})  # fmt: skip
    return rows, plots


UNITS = {"error": "error (%)", "likelihood": "log-likelihood a sample", "margin": "loss of margin a sample"}


def measures(model, table: Table, options) -> dict[str, float]:
    """Error, mean ``log p(x, c)`` and mean loss of the margin ``gamma`` of a classifier ([R18] Figure 1)."""
    joint, rows = log_joint(model, table.x, options.rule), np.arange(len(table.y))
    margin = gmm.soft_margins(joint.copy(), table.y, HybridOptions.sharpness)[0]
    found = {"error": 100.0 * float((joint.argmax(axis=1) != table.y).mean()),
             "likelihood": float(joint[rows, table.y].mean()),
             "margin": float(np.maximum(options.margin - margin, 0.0).mean())}  # fmt: skip
    return {key: found[key] for key in options.measures}


def setting_of(folder, name: str) -> float:
    """The value of an option that the model in ``folder`` was trained with, or what it started from."""
    used = (record.of(folder) or {}).get("options", {})
    if name not in used and used.get("init"):
        return setting_of(used["init"], name)
    if not isinstance(used.get(name), int | float):
        raise MargoError(f"{folder}: neither it nor its start was trained with a number {name}")
    return float(used[name])


def sample_pictures(models: dict, table: Table, options) -> list[dict]:
    """A picture for each model of pixels: samples drawn from it, a row a class, from 0 (black) to the training data's
    largest value (white)."""
    width = table.x.shape[1]
    height = options.height or round(width**0.5)
    if width % height:
        raise MargoError(f"{width} features are no images of {height} rows: give --height")
    plots = []
    for name, model in models.items():
        rows = []
        for c in range(model.classes):
            x = gmm.draw(model, c, options.count, np.random.default_rng([options.seed, c]))
            images = np.clip(x / table.x.max(), 0.0, 1.0).reshape(options.count, height, -1)
            rows.append(np.concatenate(list(np.pad(images, ((0, 0), (1, 1), (1, 1)))), axis=1))
        picture = (255 * np.concatenate(rows)).astype(np.uint8)
        plots.append({"title": f"Samples of {name}", "kind": "image", "source": picture_address(picture)})
    return plots


def progress_plots(folders, x: str, fields, points: int) -> list[dict]:
    """Lines of ``fields`` of the trainers' progress against ``x``: a line for each folder, or for each field of one."""
    series = []
    for folder in folders:
        told = {name: [] for name in (x, *fields)}
        for report in read_progress(folder):
            held = report.get("each", {})
            count = len(next(iter(held.values()), [0]))
            for n in range(count):
                for name in told:
                    value = held[name][n] if name in held else report.get(name)
                    told[name].append(report["iteration"] - count + 1 + n if name == "iteration" else value)
        missing = [name for name, values in told.items() if not values or None in values]
        if missing:
            raise MargoError(f"{folder}: its progress.jsonl tells no {', '.join(missing)}")
        shown = np.unique(np.linspace(0, len(told[x]) - 1, min(points, len(told[x]))).astype(int))
        for name in fields:
            label = name if len(folders) == 1 else folder.name if len(fields) == 1 else f"{folder.name}, {name}"
            series.append({"name": label, "x": [told[x][n] for n in shown], "y": [told[name][n] for n in shown]})
    return [{"title": f"{' and '.join(fields).capitalize()} by {x.replace('_', ' ')}", "kind": "line",
             "x_label": x.replace("_", " "), "y_label": ", ".join(fields), "series": series}]  # fmt: skip


def race_table(folders) -> dict:
    """The objectives of max-margin trainers at multiples of the CPU seconds that SMO took ([DA08] Figure 1): by how
    many per cent each is above the dual objective, which SMO proved to be below the optimum."""
    told = {folder.name: read_progress(folder) for folder in folders}
    for name, lines in told.items():
        if not lines or "cpu_seconds" not in lines[-1]:
            raise MargoError(f"{name}: its progress.jsonl tells no cpu_seconds")
    proofs = [lines[-1] for lines in told.values() if "dual" in lines[-1]]
    if len(proofs) != 1:
        raise MargoError(f"{len(proofs)} of {', '.join(told)} have a dual objective in progress.jsonl, expected one")
    bound, seconds = proofs[0]["dual"], proofs[0]["cpu_seconds"]
    cells = []
    for name, lines in told.items():
        best = [max((line["objective"] for line in lines if line["cpu_seconds"] <= times * seconds), default=-np.inf)
                for times in RACE]  # fmt: skip
        above = [f"{100 * (-value / bound - 1):.2f}" for value in best]
        cells.append([name, f"{lines[-1]['cpu_seconds']:.1f}", *above])
    return {
        "title": "Objective above the optimum's bound by CPU time (%)", "kind": "table",
        "columns": ["system", "CPU seconds in all", *(f"{n} x" for n in RACE)], "cells": cells,
        "note": f"Of the best iterate up to multiples of SMO's {seconds:.1f} seconds; the bound is its dual objective.",
    }  # fmt: skip


RACE = (1, 2, 5, 10, 20)  # times the seconds of the one that proves the bound
KINDS = ("supervised", "semi-supervised")


def label_curves(train: Table, test: Table, options, step, printed=lambda kind, count: None):
    """``(rows, plots)``: errors of supervised and semi-supervised training for each number of labels and objective.

    Numbers above that of the samples are left out. Beside the curves stand those of the paper, where ``printed(kind,
    labels)`` gives the error that it has for every number."""
    base = HybridOptions(**{field.name: getattr(options, field.name) for field in fields(HybridOptions)})
    asked = [count for count in options.labels if count <= len(train.y)]
    beyond = [str(count) for count in options.labels if count > len(train.y)]
    if not asked:
        raise MargoError(f"{', '.join(beyond)} labels asked for; expected {len(train.y)} (the samples) or fewer")
    note = f"{', '.join(beyond)} labels left out: there are {len(train.y)} training samples." if beyond else ""
    if note:
        step.say(note)
    kinds = [f"{kind} ({objective})" for objective in options.objectives for kind in KINDS]
    rows = []
    for count in asked:
        row = {"labels": count, **{kind: [] for kind in kinds}}
        for draw in range(options.draws):
            rng = np.random.default_rng([options.seed, draw])
            shown = choose_labels(train.y, count, rng)
            known = train.x[shown], train.y[shown]
            start, _ = gmm.fit(*known, GmmOptions(covariance="full", ridge=options.start_ridge), rng)
            hidden = np.full(len(train.y), -1)
            hidden[shown] = train.y[shown]
            # As many steps as with all samples: small batches over the few ([R18] 4.4).
            batch = max(1, round(base.batch * count / len(train.y)))
            for objective in options.objectives:
                chosen = replace(base, objective=objective)
                few, _ = hybrid.fit(start, *known, replace(chosen, batch=batch), options.seed)
                many, _ = hybrid.fit(start, train.x, hidden, chosen, options.seed)
                for kind, model in zip(KINDS, (few, many)):
                    row[f"{kind} ({objective})"].append(error_percent(model, test))
            step.say(f"{count} labels, draw {draw}: " + ", ".join(f"{kind} {row[kind][-1]:.2f} %" for kind in kinds))
        rows.append(row)
    counts = [row["labels"] for row in rows]
    series = [{"name": kind, "x": counts, "y": [float(np.mean(row[kind])) for row in rows],
               "sd": [float(np.std(row[kind])) for row in rows]} for kind in kinds]  # fmt: skip
    for kind in kinds:
        figures = [printed(kind, count) for count in counts]
        if None not in figures:
            series.append({"name": f"{kind}, the paper", "x": counts, "y": figures})
    return rows, [{"title": "Error with few labels", "kind": "line", "x_label": "labelled samples", "x_log": True,
                   "y_label": "error (%)", "series": series} | ({"note": note} if note else {})]  # fmt: skip


def choose_labels(y, count: int, rng) -> np.ndarray:
    """``count`` samples, at least one of each class, at random."""
    classes = np.unique(y)
    if not len(classes) <= count <= len(y):
        raise MargoError(f"{count} labels asked for; expected {len(classes)} (one a class) to {len(y)}")
    order = rng.permutation(len(y))
    first = np.array([order[np.argmax(y[order] == c)] for c in classes])
    rest = order[~np.isin(order, first)][: count - len(first)]
    return np.concatenate([first, rest])
