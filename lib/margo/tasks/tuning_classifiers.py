"""Hyper-parameter search for the classifiers' trainers, on development data, through Optuna."""

import dataclasses
import json
from functools import partial

import numpy as np

from margo.classify import ebw_training, gmm, hybrid
from margo.classify.gmm import GmmOptions
from margo.classify.maxmargin import MarginOptions
from margo.errors import MargoError, refuse
from margo.formats.atomic import write_json, write_text
from margo.formats.tables import Table
from margo.runtime import record
from margo.tasks import classifying

OPTIONS = {"train_gmm": GmmOptions, "train_ebw": ebw_training.EbwOptions, "train_hybrid": hybrid.HybridOptions,
           "train_margin": MarginOptions}  # fmt: skip


def parse_space(texts, trainer: str) -> dict[str, tuple]:
    """``{name: ("choice", values) | ("float", low, high, log) | ("int", low, high)}``; all faults at once."""
    fields = {field.name: field.type for field in dataclasses.fields(OPTIONS[trainer])}
    space, faults = {}, []
    for text in texts:
        name, _, values = text.partition("=")
        name = name.replace("-", "_")
        try:
            if name not in fields:
                raise ValueError(f"{trainer} has no option {name}; it has {', '.join(fields)}")
            if ".." in values:
                low, high = (int(value) for value in values.split(".."))
                space[name] = ("int", low, high)
            elif ":" in values:
                low, high, *rest = values.split(":")
                if rest not in ([], ["log"]):
                    raise ValueError("expected low:high or low:high:log")
                space[name] = ("float", float(low), float(high), rest == ["log"])
            else:
                space[name] = ("choice", [convert(value, fields[name]) for value in values.split(",")])
        except ValueError as error:
            faults.append(f"{text}: {error}")
    refuse(faults, "settings cannot be searched")
    return space


def convert(text: str, kind):
    if not text:
        raise ValueError("no value")
    if kind is bool:
        if text not in ("true", "false"):
            raise ValueError(f"{text!r} is neither true nor false")
        return text == "true"
    return kind(text)


def fit(trainer: str, settings: dict, model, train, seed: int, validation=None):
    """The classifier that ``trainer`` makes of ``train`` with ``settings``, from ``model`` where it needs a start; of
    hybrid training the epoch that is best on the table ``validation``, where that is given."""
    options = OPTIONS[trainer](**settings)
    if trainer == "train_gmm":
        return gmm.fit(train.x, train.y, options, np.random.default_rng(seed), len(train.names))[0]
    if trainer == "train_ebw":
        return ebw_training.fit(model, train.x, train.y, options)[0]
    if trainer == "train_hybrid":
        held = (validation.x, validation.y) if validation is not None else None
        return hybrid.fit(model, train.x, train.y, options, seed, held)[0]
    return classifying.fit_margin(model, train, options, seed)[0]


def folds_of(options, step) -> list[tuple[Table, Table]]:
    """``(train, held out)`` of every fold; one where the development set is used as it is."""
    train, dev = (classifying.labelled(classifying.read_set(options.data, name, step)) for name in ("train", "dev"))
    if options.folds <= 1 or len(dev.y) >= options.small:
        return [(train, dev)]
    x, y = np.concatenate([train.x, dev.x]), np.concatenate([train.y, dev.y])
    fold = assign_folds(y, options.folds, np.random.default_rng(options.seed))
    return [tuple(Table(x[rows], y[rows], train.names) for rows in (fold != n, fold == n))
            for n in range(options.folds)]  # fmt: skip


def assign_folds(y, folds: int, rng) -> np.ndarray:
    """[N]: the fold in which each sample is held out, at random; -1, never, for classes that some fold would train
    without."""
    fold = rng.permutation(len(y)) % folds
    together = [c for c in np.unique(y) if len(np.unique(fold[y == c])) == 1]
    return np.where(np.isin(y, together), -1, fold)


def starts_of(options, folds, step) -> list:
    """A start for every fold, trained on what it may see with the options of ``--init``; none for train_gmm."""
    if options.trainer == "train_gmm":
        return [None] * len(folds)
    if options.init is None:
        raise MargoError(f"{options.trainer} starts from a model: give --init")
    made = record.of(step.input(options.init, made_by="train_gmm"))
    if not made:
        raise MargoError(f"--init {options.init}: no {record.NAME} that tells how it was trained")
    used = made["options"]
    if len(folds) == 1 and not used.get("with_dev"):
        return [classifying.read_model(options.init, step, folds[0][0].names)[0]]
    if "components" in used:
        raise MargoError(f"--init {options.init}: its components were chosen on dev; give --folds 1")
    settings = {field.name: used[field.name] for field in dataclasses.fields(GmmOptions)}
    return [fit("train_gmm", settings, None, train, used["seed"]) for train, _ in folds]


def choose_components(train: Table, dev: Table, options):
    """``(Classifier, Gaussians of each class, error on dev)``: of mixtures with each of ``options.components`` those,
    class by class, that err least together ([R18] 4.2.1); a class takes the fewest of equals."""
    models = []
    for count in options.components:
        settings = GmmOptions(**{field.name: getattr(options, field.name) for field in dataclasses.fields(GmmOptions)})
        settings = dataclasses.replace(settings, mixtures=count)
        models.append(gmm.fit(train.x, train.y, settings, np.random.default_rng(options.seed), len(train.names))[0])
    joint = np.stack([gmm.log_joint(model, dev.x) for model in models])  # [numbers, N, C]
    chosen, error = choose_columns(joint, dev.y)
    return gmm.joined([models[n] for n in chosen]), [options.components[n] for n in chosen], 100.0 * error


def choose_columns(joint, y) -> tuple[list[int], float]:
    """For each class which of ``joint[M, N, C]`` to take, so that few of the samples ``y[N]`` are wrong: from the best
    that all share, one class at a time, until no change helps; and the part that is wrong then."""
    classes = np.arange(joint.shape[2])

    def wrong(which):
        return float((joint[which, :, classes].argmax(axis=0) != y).mean())

    chosen = min(([n] * len(classes) for n in range(len(joint))), key=wrong)
    best, before = wrong(chosen), np.inf
    while best < before:
        before = best
        for c in classes:
            tries = [[*chosen[:c], n, *chosen[c + 1 :]] for n in range(len(joint))]
            found = min(tries, key=wrong)
            if wrong(found) < best:
                chosen, best = found, wrong(found)
    return chosen, best


def search(options, step) -> None:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    folds = folds_of(options, step)
    starts = starts_of(options, folds, step)
    space = parse_space(options.space, options.trainer)
    fixed = {name: kind[1][0] for name, kind in parse_space(options.fixed, options.trainer).items()}
    choosing = options.folds == 1  # dev then chooses the epoch too, as it does for the trainer ([R18] 4.2.1)
    grid = all(kind[0] == "choice" for kind in space.values())
    values = {name: kind[1] for name, kind in space.items()}
    make = partial(optuna.samplers.GridSampler, values) if grid else optuna.samplers.TPESampler
    key = json.dumps([options.trainer, options.space, options.fixed, len(folds), [*step.inputs.values()], options.seed])
    storage = f"sqlite:///{step.out / 'study.db'}"
    study = optuna.create_study(storage=storage, study_name=key, load_if_exists=True, sampler=make(seed=options.seed))
    finished = sum(trial.state.is_finished() for trial in study.trials)
    if finished:
        step.say(f"going on after {finished} trials")

    def objective(trial):
        chosen = {name: suggest(trial, name, kind) for name, kind in space.items()}
        try:
            fitted = [fit(options.trainer, fixed | chosen, start, train, options.seed, held if choosing else None)
                      for start, (train, held) in zip(starts, folds)]  # fmt: skip
        except MargoError as error:
            step.say(f"{options.out.name}, trial {trial.number}: {error}")
            raise optuna.TrialPruned() from None
        error = float(np.mean([classifying.error_percent(model, held) for model, (_, held) in zip(fitted, folds)]))
        step.say(f"{options.out.name}, trial {trial.number}: {error:.3f} % of the held-out samples wrong with {chosen}")
        return error

    wanted = min(options.trials, int(np.prod([*map(len, values.values())]))) if grid else options.trials
    if finished < wanted:
        study.optimize(objective, n_trials=wanted - finished)
    done = [trial for trial in study.trials if trial.state == optuna.trial.TrialState.COMPLETE]
    if not done:
        raise MargoError("no trial ended with a model")
    best = min(done, key=lambda trial: (trial.value, trial.number))
    settings = fixed | best.params
    lines = [f"# {best.value:.3f} % of the held-out samples wrong, best of {len(done)} trials", f"[{options.trainer}]"]
    lines += [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    write_text(step.output("best.toml"), "\n".join(lines) + "\n")
    trials = [{"number": trial.number, "error": trial.value, "settings": trial.params} for trial in done]
    write_json(step.output("trials.json"), trials)
    step.say(f"{options.out.name}, best: {best.value:.3f} % wrong with {settings}")


def suggest(trial, name: str, kind):
    if kind[0] == "choice":
        return trial.suggest_categorical(name, kind[1])
    if kind[0] == "int":
        return trial.suggest_int(name, kind[1], kind[2])
    return trial.suggest_float(name, kind[1], kind[2], log=kind[3])
