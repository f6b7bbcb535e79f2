"""Hyper-parameter search for the classifiers' trainers, on development data, through Optuna."""

import dataclasses
import json

import numpy as np

from margo.classify import ebw, em, hybrid
from margo.classify.options import EbwOptions, EmOptions, HybridOptions, MarginOptions
from margo.errors import MargoError, refuse
from margo.formats.atomic import write_json, write_text
from margo.formats.tables import Table
from margo.runtime import classifying, record

OPTIONS = {
    "train_gmm": EmOptions, "train_ebw": EbwOptions, "train_hybrid": HybridOptions, "train_margin": MarginOptions,
}  # fmt: skip


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


def fit(trainer: str, settings: dict, model, train, dev, seed: int):
    """The classifier that ``trainer`` makes of ``train`` with ``settings``."""
    options = OPTIONS[trainer](**settings)
    if trainer == "train_gmm":
        return em.fit(train.x, train.y, options, np.random.default_rng(seed), len(train.names))[0]
    if trainer == "train_ebw":
        return ebw.fit(model, train.x, train.y, options)[0]
    if trainer == "train_hybrid":
        return hybrid.fit(model, train.x, train.y, options, seed, (dev.x, dev.y))[0]
    return classifying.fit_margin(model, train, options, "smo", seed)[0]


def folds_of(options, step) -> list[tuple]:
    """``(start model, train, dev)`` of every fold; one where the development set is used as it is."""
    train = classifying.labelled(classifying.read_set(options.data, "train", step))
    dev = classifying.labelled(classifying.read_set(options.data, "dev", step))
    model = None
    if options.trainer != "train_gmm":
        if options.init is None:
            raise MargoError(f"{options.trainer} starts from a model: give --init")
        model, _ = classifying.read_model(options.init, step, train.names)
    if options.folds <= 1 or len(dev.y) >= options.small:
        return [(model, train, dev)]
    x, y = np.concatenate([train.x, dev.x]), np.concatenate([train.y, dev.y])
    fold = np.random.default_rng(options.seed).permutation(len(y)) % options.folds
    found = []
    for n in range(options.folds):
        inside, outside = (Table(x[rows], y[rows], train.names) for rows in (fold != n, fold == n))
        if model is not None:
            used = record.read(options.init)["options"]
            settings = EmOptions(**{field.name: used[field.name] for field in dataclasses.fields(EmOptions)})
            model, _ = em.fit(inside.x, inside.y, settings, np.random.default_rng(used["seed"]), len(train.names))
        found.append((model, inside, outside))
    return found


def search(options, step) -> None:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    folds = folds_of(options, step)
    space = parse_space(options.space, options.trainer)
    fixed = {name: kind[1][0] for name, kind in parse_space(options.fixed, options.trainer).items()}
    grid = all(kind[0] == "choice" for kind in space.values())
    if grid:
        sampler = optuna.samplers.GridSampler({name: kind[1] for name, kind in space.items()}, seed=options.seed)
    else:
        sampler = optuna.samplers.TPESampler(seed=options.seed)
    key = json.dumps([options.trainer, options.space, options.fixed, len(folds), step.inputs, options.seed])
    study = optuna.create_study(
        storage=f"sqlite:///{step.out / 'study.db'}", study_name=key, load_if_exists=True, sampler=sampler
    )
    finished = sum(trial.state.is_finished() for trial in study.trials)
    if finished:
        step.say(f"going on after {finished} trials")

    def objective(trial):
        chosen = {name: suggest(trial, name, kind) for name, kind in space.items()}
        try:
            fitted = [fit(options.trainer, fixed | chosen, *fold, options.seed) for fold in folds]
        except MargoError as error:
            step.say(f"trial {trial.number}: {error}")
            raise optuna.TrialPruned() from None
        error = float(np.mean([classifying.error_percent(model, dev) for model, (_, _, dev) in zip(fitted, folds)]))
        step.say(f"trial {trial.number}: {error:.3f} % of dev wrong with {chosen}")
        return error

    wanted = min(options.trials, int(np.prod([len(kind[1]) for kind in space.values()]))) if grid else options.trials
    if finished < wanted:
        study.optimize(objective, n_trials=wanted - finished)
    done = [trial for trial in study.trials if trial.state == optuna.trial.TrialState.COMPLETE]
    if not done:
        raise MargoError("no trial ended with a model")
    best = min(done, key=lambda trial: (trial.value, trial.number))
    settings = fixed | best.params
    lines = [f"# {best.value:.3f} % of dev wrong, best of {len(done)} trials", f"[{options.trainer}]"]
    lines += [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    write_text(step.output("best.toml"), "\n".join(lines) + "\n")
    trials = [{"number": trial.number, "error": trial.value, "settings": trial.params} for trial in done]
    write_json(step.output("trials.json"), trials)
    step.say(f"best: {best.value:.3f} % of dev wrong with {settings}")


def suggest(trial, name: str, kind):
    if kind[0] == "choice":
        return trial.suggest_categorical(name, kind[1])
    if kind[0] == "int":
        return trial.suggest_int(name, kind[1], kind[2])
    return trial.suggest_float(name, kind[1], kind[2], log=kind[3])
