"""Vocal tract length normalisation: the warp of each speaker's frequencies under which a model likes them best."""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from margo.errors import MargoError, refuse
from margo.formats.atomic import write_json
from margo.formats.datadir import DataDir
from margo.formats.reading import file_in, read_json
from margo.gaussian.likelihood import log_likelihoods, scorer
from margo.knobs import Knobs, knob
from margo.model.graph import align_graph
from margo.model.hmm import HmmSet
from margo.search.viterbi import viterbi_score
from margo.signal.front_end import options_of
from margo.tasks.featuring import features_of

NAME = "warps.json"
WARPED = {"vtln": "speaker"}  # of a record of features: a warp for each


@dataclass(frozen=True)
class WarpOptions(Knobs):
    """The warps to try."""

    furthest: float = knob(0.16, "furthest from 1, to either side", above=0, below=0.5)
    steps: int = knob(8, "to either side", least=1)
    most: int = knob(20, "utterances of a speaker to listen to, at most", least=1)

    @property
    def warps(self) -> list[float]:
        """1 first: where several are as good, the first is taken."""
        away = self.furthest * np.arange(1, self.steps + 1) / self.steps
        return [1.0, *(round(float(1 + sign * each), 6) for each in away for sign in (-1, 1))]


def few_of_each(data: DataDir, most: int) -> DataDir:
    """At most so many utterances of each speaker, spread over all of theirs."""
    owners, seen, kept = Counter(row.speaker for row in data), Counter(), []
    for row in data:
        every = -(-owners[row.speaker] // most)
        if seen[row.speaker] % every == 0:
            kept.append(row)
        seen[row.speaker] += 1
    return replace(data, utterances=tuple(kept))


def best_warps(
    hmms: HmmSet, data: DataDir, options: WarpOptions, said: dict, where, allow_pipes: bool
) -> dict[str, float]:
    """``speaker -> warp`` with the likeliest best paths through what was ``said``, by the name of utterances."""
    front = options_of({key: value for key, value in hmms.meta.get("features", {}).items() if key not in WARPED},
                       "the model's features")  # fmt: skip
    data = few_of_each(data, options.most)
    speakers, compiled = {row.name: row.speaker for row in data}, {}
    sums: dict[str, dict[float, float]] = {}
    for warp in options.warps:
        _, made = features_of(data, front, allow_pipes, where, warps=dict.fromkeys(speakers.values(), warp))
        for each in made:
            if each.features is None or not said.get(each.name):
                continue
            words = said[each.name]
            if words not in compiled:
                graph = align_graph(hmms, words)
                compiled[words] = graph, scorer(hmms.pool, graph.states)
            graph, likelihoods = compiled[words]
            score = viterbi_score(graph, log_likelihoods(likelihoods, hmms.padded(each.features)))
            if score > -np.inf:
                own = sums.setdefault(speakers[each.name], {})
                own[warp] = own.get(warp, 0.0) + score
    missing = sorted({*speakers.values()} - sums.keys())
    refuse([f"{speaker}: no utterance can be aligned" for speaker in missing], f"{data.folder}: no warp", most=10)
    return {speaker: max(options.warps, key=lambda warp: own.get(warp, -np.inf))
            for speaker, own in sorted(sums.items())}  # fmt: skip


def write_warps(path, warps: dict[str, float]) -> None:
    write_json(path, {"warps": warps})


def read_warps(folder) -> dict[str, float]:
    """``speaker -> warp``."""
    path = file_in(folder, NAME)
    warps = read_json(path, "what find_warps writes", {"warps": {...: float}})["warps"]
    wrong = [f"{speaker}: {warp}" for speaker, warp in warps.items() if not 0.5 <= warp <= 2]
    if wrong:
        raise MargoError(f"{path}: {'; '.join(wrong[:5])}, expected warps of 0.5 to 2")
    return warps
