"""Pairwise machines on score-spaces of hidden Markov models, one kernel for each pair of words ([L04] 7)."""

from dataclasses import dataclass

import numpy as np

from margo.kernel import hmm_scorespace
from margo.kernel.descent import DescentOptions, Trained, train
from margo.kernel.hmm_scorespace import Frames, WordModel


@dataclass(frozen=True, eq=False)
class WordPair:
    """The kernel and machine of two words: parameters of both models as one vector, weights [P] on the scores."""

    theta: np.ndarray
    weights: np.ndarray
    bias: np.ndarray  # [1]

    def decide(self, start: list[WordModel], frames: Frames, space: str, per_frame: bool) -> np.ndarray:
        """[N], positive for the first word; ``start`` are the two ML models."""
        models = hmm_scorespace.from_vector(self.theta, start)
        return hmm_scorespace.score(models, frames, space, per_frame=per_frame)[0] @ self.weights + self.bias


def train_word_pair(start: list[WordModel], frames: Frames, signs, space: str, options: DescentOptions, *,
                    metric: str = "diagonal", window: int | None = None, per_frame: bool = True,
                    report=lambda line: None) -> tuple[WordPair, WordPair, Trained]:  # fmt: skip
    """``(initial, trained, how)`` from the ML models ``start`` of two words and utterances of both.

    ``signs`` [N] is +1 for the first word. ``window`` limits time correlations in the second derivatives. ``report`` is
    told every :class:`margo.kernel.descent.Iteration`.
    """

    def scores(theta):
        moved = hmm_scorespace.from_vector(theta, start)
        phi, pullback = hmm_scorespace.score(moved, frames, space, window, per_frame)
        return phi, lambda d_phi: hmm_scorespace.gradient_to_vector(moved, start, pullback(d_phi))

    theta = hmm_scorespace.to_vector(start, start)
    made = train(scores, theta, signs, options, metric, hmm_scorespace.blocks(start, space), report=report)
    initial = WordPair(theta, made.initial_weights[:, 0], made.initial_bias)
    return initial, WordPair(made.theta, made.weights[:, 0], made.bias), made
