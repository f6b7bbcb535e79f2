"""Large-margin training with the ball held fixed: what its radius does ([LJ07] Figures 1 and 2, Table II)."""

from dataclasses import dataclass, fields
from typing import ClassVar

from margo.estimate.lme.region import Lme, LmeOptions
from margo.knobs import knob
from margo.runtime.trainer import Training
from margo.tasks import speech, tuning

SWEEP = "sweep.json"
ACCURACY = "accuracy (%), whole strings"


@dataclass(frozen=True)
class SweepOptions(LmeOptions):
    """Those of LME that act here: the ball is given, and every epoch is shown as it is."""

    radius: ClassVar[str] = "1"  # unused: each of --radii takes its place
    average: ClassVar[int] = 1
    patience: ClassVar[int] = 0
    epochs: int = knob(5, "epochs with each radius", least=1)
    radii: tuple[float, ...] = knob((0.004, 0.02, 0.1, 0.5), "values of r^2 / K", above=0)

    def faults(self) -> list[str]:
        return [*super().faults(), *([] if self.radii else ["--radii is empty, expected values of r^2 / K"])]

    def at(self, radius: float) -> LmeOptions:
        """The options of training with this radius."""
        own = {each.name: getattr(self, each.name) for each in fields(LmeOptions)}
        return LmeOptions(**own | {"radius": str(radius)})


def sweep(options: SweepOptions, hmms, corpus, sets: dict[str, speech.Speech], say) -> dict:
    """The contents of ``sweep.json``: for each radius a curve, the accuracy of each set after 0, 1, 2 ... epochs, and
    the epoch but the start that dev picks (the training data, where ``sets`` have no dev); and the best of the curves.

    The ball keeps its size and every step is taken, unless ``--reject`` ends a curve at the first that does not pay.
    """

    def errors(model) -> dict[str, dict[str, int]]:
        return {name: tuning.errors_on(data, model, corpus.where) for name, data in sets.items()}

    first, curves = errors(hmms), []
    Lme(options.at(options.radii[0])).search(hmms, corpus)
    searched = corpus.memory
    for radius in options.radii:
        corpus.memory = searched  # every curve begins with the same search
        points, costs, done = [first], [], False
        training = Training(Lme(options.at(radius)), [lambda: hmms], corpus)
        state = training.start()
        while not done:
            state, report, done = training.advance(len(points), state)
            blind = training.criterion.cost(report, len(costs))
            costs.append(sum(points[-1]["dev"].values()) if "dev" in sets else blind)
            if not done:
                points.append(errors(state.hmms))
        epoch = min(range(len(costs) > 1, len(costs)), key=costs.__getitem__)  # the start tells nothing of the radius
        accuracy = {name: [accuracy_of(point[name], data) for point in points] for name, data in sets.items()}
        say(f"r^2/K {radius:g}: epoch {epoch} of {len(points) - 1} is the best; "
            + ", ".join(f"{name} {values[epoch]:.2f} %" for name, values in accuracy.items()))  # fmt: skip
        curves.append({"radius": radius, "epoch": epoch, "cost": costs[epoch], "accuracy": accuracy})
    best = min(curves, key=lambda curve: (curve["cost"], curve["radius"]))
    start = {name: values[0] for name, values in best["accuracy"].items()}
    return {"chosen_on": "dev" if "dev" in sets else "train", "start": start, "best": chosen(best), "curves": curves}


def accuracy_of(errors: dict[str, int], data: speech.Speech) -> float:
    """Strings without an error, in percent."""
    return round(100 * (1 - errors["dev_wrong"] / len(data.items)), 3)


def chosen(curve: dict) -> dict:
    """A curve's radius and epoch, and the accuracy of each set there."""
    accuracy = {name: values[curve["epoch"]] for name, values in curve["accuracy"].items()}
    return {"radius": curve["radius"], "epoch": curve["epoch"], "accuracy": accuracy}


def sweep_plots(swept: dict) -> list[dict]:
    """[LJ07] Figure 1, accuracy at the epoch that is picked against the radius, and Figure 2, accuracy by epoch."""
    picked, common = [chosen(curve) for curve in swept["curves"]], {"y_label": ACCURACY, "kind": "line"}
    radii, names = [point["radius"] for point in picked], list(picked[0]["accuracy"])
    against = [{"name": name, "x": radii, "y": [point["accuracy"][name] for point in picked]} for name in names]
    plots = [{"title": "accuracy against r²/K", "series": against, "x_label": "r²/K", "x_log": True,
              "note": f"Each at the epoch that {swept['chosen_on']} picks.", **common}]  # fmt: skip
    for name in names:
        lines = {f"{curve['radius']:g}": curve["accuracy"][name] for curve in swept["curves"]}
        series = [{"name": radius, "x": list(range(len(line))), "y": line} for radius, line in lines.items()]
        title = f"accuracy on {name} by epoch, for each r²/K"
        plots.append({"title": title, "series": series, "x_label": "epoch", **common})
    return plots
