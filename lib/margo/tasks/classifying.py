"""What the steps of GMM classifiers share: their data, their models, and the resumable loops of their trainers."""

import time
from dataclasses import fields
from functools import partial
from pathlib import Path

import numpy as np

from margo.classify import ebw_training, gmm, hybrid, maxmargin, smo
from margo.errors import MargoError
from margo.formats.classifiers import arrays_of, classifier_of, read_classifier
from margo.formats.reading import file_in
from margo.formats.tables import Table, read_table
from margo.gaussian.covariances import Full
from margo.runtime import record
from margo.runtime.parallel import map_chunks
from margo.tasks.scoring import score_classes


def read_set(folder, name: str, step) -> Table:
    """The table ``name`` (train, dev, test) of a data folder."""
    path = Path(folder) / f"{name}.npz"
    if not path.is_file():
        raise MargoError(f"{path}: no such file: run the data stage first (--stage 0)")
    return read_table(step.input_file(path))


def training_set(folder, with_dev: bool, step) -> Table:
    """The train table, with dev's samples after it where asked."""
    table = read_set(folder, "train", step)
    if not with_dev:
        return table
    dev = read_set(folder, "dev", step)
    return Table(np.concatenate([table.x, dev.x]), np.concatenate([table.y, dev.y]), table.names)


def labelled(table: Table) -> Table:
    """The samples of a table that have a label."""
    known = table.y >= 0
    return Table(table.x[known], table.y[known], table.names)


def read_model(folder, step, names=None):
    """The classifier of a trainer's folder; refuses one of other classes than ``names``."""
    path = file_in(step.input(folder, made_by="train_gmm"), "model.npz")
    model, meta = read_classifier(path)
    if names is not None and tuple(meta["names"]) != tuple(names):
        raise MargoError(f"{path}: trained for classes {', '.join(meta['names'])}; the data have {', '.join(names)}")
    return model, meta


def log_joint(model, x, rule: str = "mixture") -> np.ndarray:
    """``log p(x, c)`` or what stands for it, for any classifier."""
    if isinstance(model, maxmargin.MaxMargin):
        return maxmargin.log_joint(model, x)
    return gmm.log_joint(model, x, rule)


def error_percent(model, table: Table, rule: str = "mixture") -> float:
    table = labelled(table)
    return 100.0 * float((log_joint(model, table.x, rule).argmax(axis=1) != table.y).mean())


def parameters(model) -> int:
    """Numbers that a classifier holds, of a symmetric matrix those of one triangle; [PW10] 5.2 counts in this way."""
    if isinstance(model, maxmargin.MaxMargin):
        K, D = model.linear.shape
        return K * (D * (D + 1) // 2 + D + 1)
    (K, D), spread = model.pool.means.shape, model.pool.covariances
    held = [getattr(spread, each.name).size for each in fields(spread)]
    matrices = K * D * (D + 1) // 2 if isinstance(spread, Full) else sum(held)
    return K * D + matrices + K + model.classes


class EbwTraining:
    """Start, advance, save and load of the epoch loop for EBW, which saves after every BLOCK iterations."""

    BLOCK = 10  # an iteration on a small task takes less than saving it
    EACH = ("objective", "wrong", "near", "far")  # told of every iteration ([PW10] Figures 2 and 3b)

    def __init__(self, model, table: Table, options, where=None):
        self.model, self.table, self.options = model, table, options
        self.each = partial(map_chunks, where=where)

    def start(self) -> ebw_training.State:
        return ebw_training.begin(self.model, self.table.x, self.table.y, self.options, self.each)

    def advance(self, iteration: int, state: ebw_training.State):
        count, done, lines = (iteration - 1) * self.BLOCK, False, []
        while not done and count < min(iteration * self.BLOCK, self.options.iterations):
            state, report, done = ebw_training.iterate(state, self.table.x, self.table.y, self.options, self.each)
            count += 1
            lines.append(report)
        told = {name: [line[name] for line in lines] for name in self.EACH}
        return state, {**report, "iteration": count, "each": told}, done or count >= self.options.iterations

    def save(self, state: ebw_training.State):
        kind, now = arrays_of(state.model)
        best = {f"best_{name}": value for name, value in arrays_of(state.best)[1].items()}
        return {"kind": kind, "best_objective": state.best_objective}, now | best

    def load(self, meta, arrays) -> ebw_training.State:
        model = classifier_of(meta["kind"], arrays)
        best = classifier_of(meta["kind"], {name.removeprefix("best_"): value for name, value in arrays.items()
                                            if name.startswith("best_")})  # fmt: skip
        now = ebw_training.expectation(model, self.table.x, self.table.y, self.options, self.each)
        return ebw_training.State(model, now, best, meta["best_objective"])


class HybridTraining:
    """Start, advance, save and load of the epoch loop for hybrid training."""

    FIELDS = ("flat", "moment", "moment2", "best")

    def __init__(self, model, table: Table, dev: Table | None, options):
        self.options = options
        self.first, self.layout = hybrid.begin(model, options)
        self.x, self.y = hybrid.prepare(table.x, table.y, model.classes, self.layout.precision)
        self.dev = (labelled(dev).x, labelled(dev).y) if dev is not None else None

    def start(self) -> hybrid.State:
        return self.first

    def advance(self, epoch: int, state: hybrid.State):
        return hybrid.advance(state, self.layout, self.x, self.y, self.options, epoch, self.options.seed, self.dev)

    def save(self, state: hybrid.State):
        arrays = {name: getattr(state, name) for name in self.FIELDS}
        error = state.best_error if np.isfinite(state.best_error) else None
        return {"steps": state.steps, "best_error": error, "best_epoch": state.best_epoch}, arrays

    def load(self, meta, arrays) -> hybrid.State:
        error = np.inf if meta["best_error"] is None else meta["best_error"]
        return hybrid.State(**arrays, steps=meta["steps"], best_error=error, best_epoch=meta["best_epoch"])

    def result(self, state: hybrid.State):
        return hybrid.unpack(state.best, self.layout)


def fit_margin(model, table: Table, options, seed: int):
    """``(MaxMargin, reports)`` by SMO, by the paper's alternation, or by projected gradient from ``model`` itself."""
    problem = maxmargin.pose(model, table.x, table.y, options.cost, options.scale, options.balance)
    if options.method == "grad":
        start = maxmargin.from_classifier(problem, model)
        packed, reports = maxmargin.descend(problem, start, options.epochs, options.every, time.process_time)
    elif options.faithful:
        from margo.classify import alternate  # with scipy's linear programs

        packed, reports = alternate.fit(problem, options, np.random.default_rng(seed))
    else:
        smo.run_epoch(smo.begin(problem), problem, np.arange(1))  # compiled before the clock runs
        state, reports = smo.fit(problem, options, np.random.default_rng(seed), time.process_time)
        packed = state.phi
    return maxmargin.to_model(problem, packed), reports


def score_models(options, step) -> None:
    """Score every model on its data, set by set; models after the first are further runs of the same row."""
    if len(options.data) not in (1, len(options.model)):
        raise MargoError(f"{len(options.model)} models but {len(options.data)} data folders; give one, or as many")
    folders = options.data * (len(options.model) // len(options.data))
    models = [read_model(folder, step) for folder in options.model]
    seconds = [(record.of(folder) or {}).get("seconds") for folder in options.model]
    for name in options.sets:
        runs, truths = [], []
        for (model, meta), folder in zip(models, folders):
            table = labelled(read_set(folder, name, step))
            if tuple(meta["names"]) != table.names:
                raise MargoError(f"{folder}/{name}.npz has other classes than the model")
            runs.append([table.names[c] for c in log_joint(model, table.x, options.rule).argmax(axis=1)])
            truths.append([table.names[c] for c in table.y])
        if any(truth != truths[0] for truth in truths):
            raise MargoError(f"runs of one row need the same labels in {name}, in the same order")
        extra = {"parameters": parameters(models[0][0])} | ({"task": options.task} if options.task else {})
        written = score_classes(
            step.out / name, truths[0], runs, system=options.system, mixtures=models[0][1]["mixtures"], set=name,
            seed=options.seed, seconds=None if None in seconds else float(np.mean(seconds)), extra=extra,
        )  # fmt: skip
        for file in written:
            step.output(f"{name}/{file}")
        wrong = [100.0 * np.mean([a != b for a, b in zip(truth, run)]) for truth, run in zip(truths, runs)]
        step.say(f"{options.system}_{models[0][1]['mixtures']} {name}: " + ", ".join(f"{w:.2f}" for w in wrong)
                 + f" % of {len(truths[0])} wrong")  # fmt: skip
