"""Which word strings are possible, and what each costs: as a graph to search, and as a number for one string."""

from dataclasses import dataclass

import numpy as np

from margo.errors import MargoError
from margo.model.graph import Graph, bigram_graph, isolated_graph, loop_graph
from margo.model.hmm import HmmSet

KINDS = ("isolated", "loop", "bigram")


@dataclass(frozen=True, eq=False)
class Grammar:
    """``isolated``: one word; ``loop``: any string; ``bigram``: any string under ``log_bigram`` [V + 1, V + 1], scaled
    by ``scale`` (see :func:`margo.model.graph.bigram_graph`). ``insertion_penalty`` is added for every word of a string
    in a loop or bigram."""

    kind: str = "loop"
    insertion_penalty: float = 0.0
    log_bigram: np.ndarray | None = None
    scale: float = 1.0

    def __post_init__(self):
        if self.kind not in KINDS:
            raise MargoError(f"grammar is {self.kind!r}, expected one of {' '.join(KINDS)}")
        if self.kind == "bigram" and self.log_bigram is None:
            raise MargoError("a bigram grammar needs its table of log probabilities")

    def graph(self, hmms: HmmSet) -> Graph:
        if self.kind == "isolated":
            return isolated_graph(hmms)
        if self.kind == "loop":
            return loop_graph(hmms, self.insertion_penalty)
        return bigram_graph(hmms, self.log_bigram, self.scale, self.insertion_penalty)

    def log_score(self, words) -> float:
        """What the graph adds to a string of word indices beside transitions and frames."""
        if self.kind == "isolated":
            return 0.0
        score = self.insertion_penalty * len(words)
        if self.kind == "bigram":
            end = len(self.log_bigram) - 1
            score += self.scale * sum(self.log_bigram[a, b] for a, b in zip([end, *words], [*words, end]))
        return float(score)
