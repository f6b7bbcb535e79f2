"""Choosing a bigram's scale and insertion penalty on development data."""

from functools import partial

import numpy as np

from margo.errors import MargoError
from margo.gaussian.likelihood import log_likelihoods, scorer
from margo.model.grammar import recognition_graph, with_grammar
from margo.model.hmm import HmmSet
from margo.score.align import align as align_words
from margo.search.viterbi import viterbi
from margo.tasks import speech


def errors_by_grammar(hmms: HmmSet, settings: list[tuple[float, float]], chunk) -> np.ndarray:
    """Word errors of a chunk under each (scale, insertion penalty), int [settings]; frames are evaluated once."""
    graphs = [recognition_graph(with_grammar(hmms, scale=scale, insertion_penalty=penalty))
              for scale, penalty in settings]  # fmt: skip
    compiled = scorer(hmms.pool, graphs[0].states)  # all graphs have all states, in the same order
    found: list[list] = [[] for _ in settings]
    for _, x, _ in speech.load(chunk):
        scores = log_likelihoods(compiled, x)
        for strings, graph in zip(found, graphs):
            path = viterbi(graph, scores)
            strings.append(path.word_names if path else ())
    references = [item.words for item in chunk]
    return np.array([align_words(references, strings).errors.sum() for strings in found])


def tune_grammar(hmms: HmmSet, data: speech.Speech, scales, penalties, where) -> tuple[HmmSet, list[dict]]:
    """The model with the setting of fewest word errors on ``data`` (the first of equals), and errors of each."""
    if hmms.meta["grammar"]["kind"] != "bigram":
        raise MargoError("only a bigram's scale and insertion penalty can be tuned")
    settings = [(float(scale), float(penalty)) for scale in scales for penalty in penalties]
    errors = speech.total(partial(errors_by_grammar, hmms, settings), data, where).tolist()
    scale, penalty = settings[int(np.argmin(errors))]
    table = [{"scale": scale, "insertion_penalty": penalty, "errors": count}
             for (scale, penalty), count in zip(settings, errors)]  # fmt: skip
    return with_grammar(hmms, scale=scale, insertion_penalty=penalty), table


def tuned(hmms: HmmSet, dev: speech.Speech, options, step, where) -> HmmSet:
    """The model as ``dev`` would have its grammar; ``step`` keeps the errors of every setting."""
    hmms, table = tune_grammar(hmms, dev, options.tune_scales, options.tune_penalties, where)
    step.extra["tuned"] = table
    chosen = hmms.meta["grammar"]
    step.say(f"{step.name}: {dev.folder.name} chooses a bigram scale of {chosen['scale']:g} and an insertion penalty "
             f"of {chosen['insertion_penalty']:g}")  # fmt: skip
    return hmms
