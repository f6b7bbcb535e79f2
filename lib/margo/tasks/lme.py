"""Large-margin training with the ball held fixed: what its radius does ([LJ07] Figures 1 and 2)."""

from dataclasses import replace

from margo.estimate.lme.region import Lme
from margo.runtime.trainer import Training


def sweep(options, hmms, corpus, errors, say) -> list[dict]:
    """Dev errors (words and strings) after 0, 1, 2 ... epochs for each of ``options.radii``."""
    Lme(options).search(hmms, corpus)
    curves, first = [], corpus.memory
    for radius in options.radii:
        corpus.memory = first  # every sweep begins with the same search
        fixed = replace(options, radius=str(radius), average=1, patience=0)
        training = Training(Lme(fixed), lambda: hmms, corpus, errors)
        state, done, counts = training.start(), False, []
        while not done:
            state, report, done = training.advance(len(counts) + 1, state)
            counts.append(report["dev_errors"] + report["dev_wrong"])
            say(f"r^2/K {radius:g}, epoch {len(counts) - 1}: {counts[-1]} dev errors")
        curves.append({"radius": radius, "dev_errors": counts})
    return curves


def sweep_plots(curves: list[dict]) -> list[dict]:
    """[LJ07] Figure 1, errors of the best epoch against the radius, and Figure 2, errors by epoch for each radius."""
    best = {"name": "best epoch", "x": [c["radius"] for c in curves], "y": [min(c["dev_errors"]) for c in curves]}
    by_epoch = [
        {"name": f"{c['radius']:g}", "x": list(range(len(c["dev_errors"]))), "y": c["dev_errors"]} for c in curves
    ]
    label = {"y_label": "dev errors (words + strings)", "kind": "line"}
    return [
        {"title": "errors against r²/K", "series": [best], "x_label": "r²/K", "x_log": True, **label},
        {"title": "errors by epoch, for each r²/K", "series": by_epoch, "x_label": "epoch", **label},
    ]
