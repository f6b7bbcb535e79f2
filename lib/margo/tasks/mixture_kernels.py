"""What the steps of generative kernels share: runs over data files and EM starts, their files, their scores."""

import itertools
import json
from functools import partial
from pathlib import Path

import numpy as np

from margo.classify.ebw_training import EbwOptions, begin, iterate
from margo.classify.gmm import Classifier
from margo.errors import MargoError
from margo.formats.atomic import read_npz, write_npz, write_text
from margo.formats.reading import fitting, read_json_lines, reading
from margo.formats.samples import Samples, read_samples
from margo.gaussian.mixtures import log_mixtures
from margo.gaussian.pool import GaussianPool
from margo.kernel import pairs
from margo.kernel.artificial import bayes
from margo.kernel.scorespace import fit_mixtures
from margo.kernel.selection import WHOLE, classify, decide_whole, families, kernel_features, study_codes
from margo.runtime.parallel import map_chunks
from margo.tasks.scoring import score_classes
from margo.tasks.sweeping import cells_over, dots, region

FORMAT = "margo-kernel-1"


def read_runs(paths, step) -> list[dict[str, Samples]]:
    """The data files, one or more drawings of the same task; all must have as many classes and features.

    A folder stands for the CSV files in it, by name.
    """
    listed = [file for path in paths for file in (sorted(path.glob("*.csv")) if path.is_dir() else [path])]
    if not listed:
        raise MargoError(f"{' '.join(map(str, paths))}: no CSV files there: run the data stage first (--stage 0)")
    files = [read_samples(step.input_file(path)) for path in listed]
    shapes = {(file["train"].x.shape[1], int(file["train"].y.max()) + 1) for file in files}
    if len(shapes) > 1:
        raise MargoError(f"data files differ in (features, classes): {', '.join(map(str, sorted(shapes)))}")
    return files


def train_run(options, task) -> tuple[dict, list[dict]]:
    """``(arrays of the initial and the trained system, lines)`` of one ``(number, samples, start)``."""
    number, samples, start = task
    rng = np.random.default_rng([options.seed, start])
    pool = fit_mixtures(samples.x, samples.y, options.mixtures, rng, options.tied)
    lines = []
    systems = pairs.train_pairs(
        samples.x, samples.y, pool, options.whole_space, options.metric, options, seed=options.seed,
        report=lambda pair, line: lines.append({"run": number, "pair": list(pair), **vars(line)}),
    )  # fmt: skip
    arrays = {f"{stage}{number}_{name}": array for stage, system in zip(("initial", "final"), systems)
              for name, array in pairs.to_arrays(system).items()}  # fmt: skip
    return arrays, lines


def tracks_of(lines: list[dict]) -> dict[tuple, list[dict]]:
    """The lines of each run and pair, in order."""
    tracks: dict[tuple, list[dict]] = {}
    for line in lines:
        tracks.setdefault((line["run"], *line["pair"]), []).append(line)
    return tracks


def summed(lines: list[dict]) -> list[dict]:
    """Progress over iterations: W summed over pairs (a pair that ended keeps its last), averaged over runs."""
    last = max(line["iteration"] for line in lines)
    runs = 1 + max(line["run"] for line in lines)
    tracks = tracks_of(lines)
    progress = []
    for iteration in range(last + 1):
        now = [track[min(iteration, len(track) - 1)] for track in tracks.values()]
        objective = sum(line["objective"] for line in now) / runs
        errors = sum(line["train_errors"] for line in now) / runs
        change = objective - progress[-1]["objective"] if progress else None
        moving = sum(len(track) > iteration for track in tracks.values())
        progress.append({"iteration": iteration, "objective": objective, "change": change, "pair_errors": errors,
                         "pairs_moving": moving})  # fmt: skip
    return progress


def ends(lines: list[dict]) -> tuple[dict, dict, float]:
    """``(before, after, steps)`` of one experiment: W, margin and support vectors of its pairs, averaged over all."""
    tracks = tracks_of(lines)

    def mean(place):
        keys = ("objective", "margin", "support")
        return {key: float(np.mean([track[place][key] for track in tracks.values()])) for key in keys}

    return mean(0), mean(-1), float(np.mean([len(track) - 1 for track in tracks.values()]))


def margins_table(title: str, held: list[tuple[str, int, list[dict]]], paper) -> dict:
    """[L04] Tables 3 and 4 without the errors: objective, margin, support vectors and iterations of systems, each as
    ``(name, mixtures, lines)``, beside what ``paper`` prints, where it does."""

    def few(value, digits):  # W of words that their scores tell apart is small
        return f"{value:.{digits}f}" if value >= 10 ** (1 - digits) else f"{value:.2g}"

    def printed(system, mixtures, metric, digits):
        found = paper and paper.find(system, mixtures, "train", metric, "")
        return f" ({found.percent:.{digits}f})" if found else ""

    cells = []
    for name, mixtures, lines in held:
        before, after, steps = ends(lines)
        row = [name, str(mixtures)]
        for metric, digits in (("objective", 1), ("margin", 2)):
            row += [f"{few(one[metric], digits)}{printed(name + more, mixtures, metric, digits)}"
                    for one, more in ((before, "-init"), (after, ""))]  # fmt: skip
        row.append(f"{before['support']:.0f} -> {after['support']:.0f}")
        row.append(f"{steps:.0f}{printed(name, mixtures, 'iterations', 0)}")
        cells.append(row)
    columns = ["system", "mix", "W before", "W after", "margin before", "margin after", "support vectors", "steps"]
    note = "Means over runs and pairs; in brackets what the paper prints. Steps are those taken and those undone."
    return {"title": title, "kind": "table", "columns": columns, "cells": cells, "note": note}


def first_track(lines: list[dict]) -> list[float]:
    return [line["objective"] for line in next(iter(tracks_of(lines).values()))]


def descent_plot(title: str, held: list[tuple[str, list[dict]]]) -> dict:
    """[L04] Figure 4: W by iteration of the first run's first pair, a line an experiment ``(name, lines)``."""
    series = []
    for name, lines in held:
        values = first_track(lines)
        series.append({"name": name, "x": list(range(len(values))), "y": values})
    return {"title": title, "kind": "line", "series": series, "x_label": "iteration", "y_label": "W"}


def descent_table(title: str, held: list[tuple[str, list[dict]]], at=(0, 1, 2, 5, 10, 20, 40, 60)) -> dict:
    """The same as a table of some iterations, and how often W rose in all; a track that ended keeps its last."""
    cells = []
    for name, lines in held:
        values = first_track(lines)
        rises = sum(later > earlier for earlier, later in itertools.pairwise(values))
        cells.append([name, *(f"{values[min(place, len(values) - 1)]:.1f}" for place in at), str(rises)])
    note = "W after so many iterations of the first run, its last where it had ended; how many iterations raised W."
    columns = ["system", *map(str, at), "rises"]
    return {"title": title, "kind": "table", "columns": columns, "cells": cells, "note": note}


def write_lines(path, lines: list[dict]) -> None:
    write_text(path, "".join(json.dumps(line) + "\n" for line in lines))


def read_lines(folder) -> list[dict]:
    """Every step of every pair, as ``pairs.jsonl`` of a folder tells it."""
    layout = {"run": int, "pair": [int], "objective": float, "margin": float, "support": int}
    return read_json_lines(Path(folder) / "pairs.jsonl", layout)


def write_systems(path, meta: dict, arrays: dict[str, np.ndarray]) -> None:
    write_npz(path, {"format": FORMAT, **meta}, arrays)


def check_numbers(arrays: dict[str, np.ndarray], dimensions: int | None = None) -> None:
    """Refuse arrays of anything but finite reals, variances that are not positive, and other ``dimensions``."""
    for name, array in arrays.items():
        most = np.finfo(np.float32).max
        least = -np.inf if name.endswith("log_weights") else 1 / most if name.endswith("variances") else -most
        good = array.dtype.kind == "f" and dimensions in (None, array.ndim)
        if not good or not ((array >= least) & (array <= most)).all():
            raise ValueError(f"{name} is {array.dtype} {array.shape} with {array.ravel()[:2]}, expected finite numbers"
                             + ", variances above 0" * name.endswith("variances"))  # fmt: skip


def read_systems(folder) -> tuple[dict, list[tuple[pairs.PairSystem, pairs.PairSystem]]]:
    """``(meta, [(initial, trained) of each run])`` of a model folder."""
    path = Path(folder) / "model.npz"
    meta, arrays = read_npz(path)
    fitting(path, meta, {"format": {FORMAT}, "space": str, "runs": int, "files": int, "mixtures": int})

    def system(prefix):
        own = {name.removeprefix(prefix): value for name, value in arrays.items() if name.startswith(prefix)}
        made = pairs.from_arrays(meta["space"], own)
        made.decide(np.zeros((1, made.prior.dimension)))  # what does not fit together shows
        return made

    with reading(path, "a model of train_kernel"):
        check_numbers(arrays)
        return meta, [(system(f"initial{run}_"), system(f"final{run}_")) for run in range(meta["runs"])]


def train_mmi(pool: GaussianPool, samples: Samples) -> Classifier:
    """The mixtures trained on by MMI, by extended Baum-Welch ([L04] (2), Table 2): the best of its iterates."""
    options = EbwOptions(criterion="cl", backtrack=True)
    priors = np.bincount(samples.y) / len(samples.y)
    state = begin(Classifier(pool, np.log(priors)), samples.x, samples.y, options)
    for _ in range(options.iterations):
        state, _, done = iterate(state, samples.x, samples.y, options)
        if done:
            break
    return state.best


def classify_mmi(model: Classifier, x) -> np.ndarray:
    return (log_mixtures(model.pool, x) + model.log_priors).argmax(1)


def write_result(step, system: str, mixtures: int, split: str, truths, predictions, groups, seconds=None, extra=None):
    """Score the runs of one system on one split into ``<system>_<mixtures>/<split>`` of the step's folder."""
    place = f"{system}_{mixtures}/{split}"
    if not all(np.array_equal(truth, truths[0]) for truth in truths):
        raise MargoError(f"{place}: runs have different labels, and cannot be one row")
    written = score_classes(
        step.out / place, truths[0].tolist(), [run.tolist() for run in predictions], system=system,
        mixtures=mixtures, set=split, groups=groups.tolist() if len(groups) else None, seconds=seconds, extra=extra,
    )  # fmt: skip
    for name in written:
        step.output(f"{place}/{name}")
    rates = [100 * float((run != truths[0]).mean()) for run in predictions]
    spread = f" ({min(rates):.2f} to {max(rates):.2f})" if len(rates) > 1 else ""
    step.say(f"{system}_{mixtures} {split}: %ERR {np.mean(rates):.2f}{spread}")


def left_out(data, starts: int, seed: int, task) -> np.ndarray:
    """Classes [settings, N'] of one group of ``data`` = (x, y, groups), for ``task`` = (settings, group)."""
    (x, y, groups), (settings, group) = data, task
    out = groups == group
    return classify(x[~out], y[~out], x[out], settings, starts, seed)


def classify_left_out(data, settings: list, starts: int, seed: int, where, step) -> np.ndarray:
    """Classes [settings, N] of ``data`` = (x, y, groups), each group's by systems trained on the others."""
    tasks = [(family, group) for family in families(settings) for group in np.unique(data[2])]
    doing = map_chunks(partial(left_out, data, starts, seed), tasks, where)
    number = {setting: index for index, setting in enumerate(settings)}
    decided = np.empty((len(settings), len(data[1])), int)
    for (family, group), classes in zip(tasks, step.progress(doing, len(tasks), "speakers left out")):
        decided[np.ix_([number[setting] for setting in family], data[2] == group)] = classes
    return decided


def tried_table(settings: list, errors, order: list[int], chosen: list[int]) -> str:
    """CSV text of all settings in ``order``, their errors on left-out groups, and whether they were chosen."""
    lines = [",".join([*vars(settings[0]), "errors", "chosen"])]
    lines += [",".join(map(str, [*vars(settings[n]).values(), errors[n], int(n in chosen)])) for n in order]
    return "\n".join(lines) + "\n"


def tried_plot(system: str, settings: list, shares: np.ndarray, note: str) -> dict:
    """A heatmap of the least errors: kinds of system against mixtures."""

    def kind(setting):
        return f"{setting.scheme} {setting.space}" + (f", Gaussian kernel {setting.width:g}" if setting.width else "")

    def mixture(setting):
        return f"{setting.mixtures} {'tied' if setting.tied else 'own'}"

    rows, columns = (list(dict.fromkeys(map(name, settings))) for name in (kind, mixture))
    least = np.full((len(rows), len(columns)), np.inf)
    for setting, share in zip(settings, shares):
        place = rows.index(kind(setting)), columns.index(mixture(setting))
        least[place] = min(least[place], share)
    return {"title": f"{system}: least errors on left-out training speakers, per cent", "kind": "heatmap",
            "values": np.round(100 * least, 1).tolist(), "rows": rows, "columns": columns,
            "x_label": "mixtures and variances", "y_label": "machines, score-space and kernel",
            "note": f"Chosen: {note}."}  # fmt: skip


def scheme_tables(files: dict[str, Samples], setting, options) -> list[dict]:
    """Tables of output codes by length and assignment, and of the passes of all-in-one machines by their start, on the
    mixtures of the first EM start."""
    train, test = files["train"], files["test"]
    rng = np.random.default_rng([options.seed, 0])
    pool = fit_mixtures(train.x, train.y, *setting.mixture[:1], rng, *setting.mixture[1:])
    both = np.concatenate([train.x, test.x])
    rows = kernel_features(log_mixtures(pool, both), len(train.y), 0.0)
    return tables_of_schemes(rows, train.y, log_mixtures(pool, test.x), test.y, options)


def tables_of_schemes(rows, y, log_lik, truth, options, task: str = "") -> list[dict]:
    """The same of features ``rows`` of any kind, of which the first train, as :func:`decide_rows` takes them; ``task``
    is named in the titles."""
    tables, total, most, of = [], len(truth), 2 ** int(y.max()) - 1, task and f", {task}"
    if options.assignments:
        rng = np.random.default_rng([options.seed, 1])
        lengths = [bits for bits in options.lengths if bits <= most]
        found = study_codes(rows, y, log_lik, truth, lengths, options.assignments, rng, options.cost)
        cells = [[str(one["bits"]), str(one["distance"]), f"{100 * np.mean(one['errors']) / total:.2f}",
                  f"{100 * min(one['errors']) / total:.2f} to {100 * max(one['errors']) / total:.2f}"]
                 for one in found]  # fmt: skip
        note = f"Each code given to the classes in {options.assignments} ways; the machines are as many as the bits."
        columns = ["bits", "smallest distance", "test error %", "over assignments"]
        tables.append({"title": f"Output codes{of}", "kind": "table", "columns": columns, "cells": cells, "note": note})
    cells = []
    for scheme in WHOLE:
        cold, warm = (decide_whole(rows, y, scheme, options.cost, start, tolerance=1e-2, max_epochs=10_000)
                      for start in (False, True))  # fmt: skip
        wrong = [int((made.argmax(1) != truth).sum()) for made, _ in (cold, warm)]
        passes = [str(made.epochs) for _, made in (cold, warm)]
        values = [f"{made.objective:.4g}" for _, made in (cold, warm)]
        cells.append([scheme, *passes, *values, f"{100 * wrong[0] / total:.2f} / {100 * wrong[1] / total:.2f}"])
    columns = ["machine", "passes from nothing", "from pairs", "W", "W from pairs", "test error %"]
    note = "Passes over the samples until no multiplier gains a hundredth of the margin; started as Hill does."
    title = f"All-in-one machines{of}"
    tables.append({"title": title, "kind": "table", "columns": columns, "cells": cells, "note": note})
    return tables


def in_words(setting) -> str:
    variances = "tied variances" if setting.tied else f"own variances (floor {setting.floor:g})"
    kernel = f", Gaussian kernel {setting.width:g}" if setting.width else ""
    kernel += f", {setting.iterations} max-margin steps" if setting.iterations else ""
    return (f"{setting.mixtures} Gaussian{'s' * (setting.mixtures > 1)} a class, {variances}, space {setting.space}"
            f"{kernel}, machines {setting.scheme}, C {setting.cost:g}")  # fmt: skip


def regions(title: str, system: pairs.PairSystem, train: Samples, resolution: int, samples: int) -> dict:
    """A plot of the two classes' decision regions, some samples, the kernel's means, and the best boundary."""
    axes, grid = cells_over(train.x, resolution)
    best = bayes(grid).reshape(resolution, resolution)
    rows, columns = np.nonzero((best[:-1] != best[1:])[:, :-1] | (best[:, :-1] != best[:, 1:])[:-1])
    drawn = [dots(f"class {'AB'[c]}", train.x[train.y == c][:samples]) for c in (0, 1)]
    means = [dots(f"means of {'AB'[c]}", system.mixtures[0].take([c]).means) for c in (0, 1)]
    boundary = dots("Bayes boundary", np.stack([axes[0][columns], axes[1][rows]], axis=1))
    decided = region(lambda grid: (system.decide(grid)[:, 0] <= 0).astype(int), train.x, resolution)
    note = "The background is the machine's decision; the points between the classes are the best boundary."
    return {"title": title, "kind": "scatter", "series": [*drawn, *means, boundary], "region": decided, "note": note}
