"""Score-spaces of hidden Markov models: one utterance -> one vector ([L04] 4.5, 5.4).

The same layout as for mixtures (:mod:`margo.kernel.scorespace`). The derivatives are moments of the frames under the
posteriors, so their cost is that of forward-backward and matrix products; the products with second derivatives that
training needs come from one more pass over the chain instead of the O(E^2 T^2) table of [L04].
"""

from dataclasses import dataclass, replace

import numpy as np

from margo.errors import MargoError
from margo.gaussian.covariances import LOG_2PI
from margo.kernel.chain import Chain, Occupancy, chain_of, occupy
from margo.kernel.scorespace import parts
from margo.model.graph import align_graph
from margo.model.hmm import HmmSet


@dataclass(frozen=True, eq=False)
class WordModel:
    """A chain whose states 0 .. S-1 are mixtures of its own (the parameters), the rest fixed (silence).

    log_weights [K], means [K, D], variances [K, D]; those of state s are ``offsets[s]:offsets[s + 1]``.
    """

    chain: Chain
    offsets: np.ndarray
    log_weights: np.ndarray
    means: np.ndarray
    variances: np.ndarray

    @property
    def owners(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))


@dataclass(frozen=True, eq=False)
class Frames:
    """Utterances ``bounds[i]:bounds[i + 1]`` of ``x`` [T, D]; ``fixed`` [T, F] scores the states no model owns."""

    x: np.ndarray
    bounds: np.ndarray
    fixed: np.ndarray

    @property
    def count(self) -> int:
        return len(self.bounds) - 1

    def take(self, utterances) -> "Frames":
        """Some of the utterances, in the order given."""
        rows = [np.arange(self.bounds[i], self.bounds[i + 1]) for i in utterances]
        bounds = np.concatenate([[0], np.cumsum([len(r) for r in rows])]).astype(np.int64)
        rows = np.concatenate(rows)
        return Frames(self.x[rows], bounds, self.fixed[rows])


def silence_states(hmms: HmmSet) -> np.ndarray:
    """Pool states of the silence unit, int [F]; empty where there is none."""
    if hmms.silence is None:
        return np.empty(0, np.int64)
    return np.unique(hmms.units[hmms.unit_index[hmms.silence]].states)


def word_model(hmms: HmmSet, word: str) -> WordModel:
    """The model of one word: its own Gaussians as parameters, silence around it fixed."""
    chain = chain_of(align_graph(hmms, [word]))
    used = align_graph(hmms, [word]).states
    fixed = silence_states(hmms)
    own = np.array([state for state in used if state not in fixed])
    column = {int(state): number for number, state in enumerate([*own, *fixed])}
    pool = hmms.pool
    rows = np.concatenate([np.arange(pool.offsets[s], pool.offsets[s + 1]) for s in own])
    offsets = np.concatenate([[0], np.cumsum([pool.sizes[s] for s in own])])
    state = np.array([column[int(used[s])] for s in chain.state])
    return WordModel(
        replace(chain, state=state), offsets, pool.log_weights[rows], pool.means[rows], pool.variances[rows]
    )


def _components(model: WordModel, x: np.ndarray) -> np.ndarray:
    """``log(c_k N(x_t; mu_k, Sigma_k))``, [T, K]."""
    precision = 1.0 / model.variances
    constant = model.log_weights - 0.5 * (
        x.shape[1] * LOG_2PI + np.log(model.variances).sum(1) + (model.means**2 * precision).sum(1)
    )
    return constant + x @ (model.means * precision).T - 0.5 * (x**2) @ precision.T


@dataclass(frozen=True, eq=False)
class _Scored:
    """One model on all utterances: posteriors, and the moments of the frames under them."""

    occupancy: Occupancy
    shares: np.ndarray
    """[T, K]: posterior of each component within its state"""
    gaussians: np.ndarray
    """gamma [T, K] ([L04] (48))"""
    zeroth: np.ndarray
    """[N, K]"""
    first: np.ndarray
    """[N, K, D]"""
    second: np.ndarray
    """[N, K, D]"""


def _to_states(model: WordModel, nodes: np.ndarray) -> np.ndarray:
    """Sum over the nodes of each own state: [T, E] -> [T, S]."""
    onto = np.zeros((len(model.chain.state), len(model.offsets) - 1))
    own = model.chain.state < onto.shape[1]
    onto[np.flatnonzero(own), model.chain.state[own]] = 1.0
    return nodes @ onto


def _scored(model: WordModel, frames: Frames, second: bool = True) -> _Scored:
    log_p = _components(model, frames.x)
    peak = np.maximum.reduceat(log_p, model.offsets[:-1], axis=1)
    shares = np.exp(log_p - peak[:, model.owners])
    total = np.add.reduceat(shares, model.offsets[:-1], axis=1)
    shares /= total[:, model.owners]
    states = np.concatenate([peak + np.log(total), frames.fixed], axis=1)
    occupancy = occupy(model.chain, states, frames.bounds)
    gaussians = shares * _to_states(model, occupancy.nodes)[:, model.owners]
    shape = (frames.count, *model.means.shape)
    first, squares = np.empty(shape), np.empty(shape if second else (0,))
    for i in range(frames.count):
        rows = slice(frames.bounds[i], frames.bounds[i + 1])
        first[i] = gaussians[rows].T @ frames.x[rows]
        if second:
            squares[i] = gaussians[rows].T @ frames.x[rows] ** 2
    zeroth = np.add.reduceat(gaussians, frames.bounds[:-1], axis=0)
    return _Scored(occupancy, shares, gaussians, zeroth, first, squares)


def _by_mean(model: WordModel, scored: _Scored) -> np.ndarray:
    """[N, K, D] ([L04] (31))."""
    return (scored.first - scored.zeroth[..., None] * model.means) / model.variances


def _spread(model: WordModel, zeroth, first, second) -> np.ndarray:
    """``sum_t gamma (x - mu)^2`` from moments."""
    return second - 2.0 * first * model.means + zeroth[..., None] * model.means**2


def _by_variance(model: WordModel, scored: _Scored) -> np.ndarray:
    """[N, K, D] ([L04] (32))."""
    spread = _spread(model, scored.zeroth, scored.first, scored.second)
    return 0.5 * (spread / model.variances**2 - scored.zeroth[..., None] / model.variances)


def _curvature(model, frames, scored, d_loglik, on_mean, on_variance, window):
    """Gradient of ``sum_i d_loglik_i l(X_i) + on_i . grad l(X_i)`` by means and variances ([L04] (46), (76), (82)).

    ``rates[t, k] = on_k . g_k(x_t)`` is how fast component k's log density at frame t moves along ``on``; its
    covariance with the component's occupancy weights the component's own derivatives, and the Gaussian's second
    derivatives act on ``on`` under the posteriors.
    """
    mu, v = model.means, model.variances
    linear = on_mean / v - on_variance * mu / v**2
    quadratic = 0.5 * on_variance / v**2
    constant = (0.5 * on_variance * (mu**2 / v**2 - 1.0 / v) - on_mean * mu / v).sum(2)
    rates = np.empty_like(scored.gaussians)
    for i in range(frames.count):
        rows = slice(frames.bounds[i], frames.bounds[i + 1])
        x = frames.x[rows]
        rates[rows] = x @ linear[i].T + x**2 @ quadratic[i].T + constant[i]
    state_rates = np.add.reduceat(scored.shares * rates, model.offsets[:-1], axis=1)
    node_rates = np.concatenate([state_rates, np.zeros_like(frames.fixed)], axis=1)[:, model.chain.state]
    # from other frames through the chain, and from the frame's own component
    response = _to_states(model, scored.occupancy.response(node_rates, window))[:, model.owners] * scored.shares
    lengths = np.diff(frames.bounds)
    weights = response + scored.gaussians * (rates + np.repeat(d_loglik, lengths)[:, None])
    zeroth, first, second = weights.sum(0), weights.T @ frames.x, weights.T @ frames.x**2
    d_means = (first - zeroth[:, None] * mu) / v
    d_variances = 0.5 * (_spread(model, zeroth, first, second) / v**2 - zeroth[:, None] / v)

    centred = scored.first - scored.zeroth[..., None] * mu  # sum_t gamma (x - mu)
    d_means -= (on_mean * scored.zeroth[..., None] / v + on_variance * centred / v**2).sum(0)
    if scored.second.size:
        spread = _spread(model, scored.zeroth, scored.first, scored.second)
        d_variances += (on_variance * (0.5 * scored.zeroth[..., None] / v**2 - spread / v**3)).sum(0)
    d_variances -= (on_mean * centred / v**2).sum(0)
    return d_means, d_variances


def score(models, frames: Frames, space: str, window: int | None = None, per_frame: bool = True):
    """``(phi [N, P], pullback)`` of utterances in the score-space of word ``models`` ([L04] (18)-(25), (45)).

    ``pullback(d_phi [N, P])`` returns the gradient as one ``(d_means [K, D], d_variances [K, D])`` a model. ``window``
    keeps only time correlations up to that many frames apart in it (None: all). ``per_frame`` divides each
    utterance's scores by its length, so that long utterances do not rule the kernel.
    """
    likelihood, by_means, by_variances = parts(space)
    if likelihood == "ratio" and len(models) != 2:
        raise MargoError(f"score-space {space}: a likelihood ratio needs 2 models, found {len(models)}")
    all_scored = [_scored(model, frames, by_variances) for model in models]
    scale = 1.0 / np.diff(frames.bounds)[:, None] if per_frame else np.ones((frames.count, 1))
    log_lik = np.stack([scored.occupancy.log_likelihoods for scored in all_scored], axis=1)
    columns = {"ratio": [log_lik[:, :1] - log_lik[:, 1:2]], "each": [log_lik], "none": []}[likelihood]
    n_likelihood = sum(column.shape[1] for column in columns)
    for model, scored in zip(models, all_scored):
        if by_means:
            columns.append(_by_mean(model, scored).reshape(frames.count, -1))
        if by_variances:
            columns.append(_by_variance(model, scored).reshape(frames.count, -1))
    phi = np.concatenate(columns, axis=1) * scale

    def pullback(d_phi: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        d_phi = d_phi * scale
        rest = d_phi[:, n_likelihood:]
        gradients = []
        for number, (model, scored) in enumerate(zip(models, all_scored)):
            if likelihood == "ratio":
                d_loglik = d_phi[:, 0] if number == 0 else -d_phi[:, 0]
            else:
                d_loglik = d_phi[:, number] if likelihood == "each" else np.zeros(frames.count)
            on = []
            for wanted in (by_means, by_variances):
                size = model.means.size if wanted else 0
                part, rest = rest[:, :size], rest[:, size:]
                on.append(part.reshape(-1, *model.means.shape) if wanted else np.zeros((frames.count, 1, 1)))
            if by_means or by_variances:
                gradients.append(_curvature(model, frames, scored, d_loglik, *on, window))
            else:
                gradients.append(_slope(model, frames, scored, d_loglik))
        return gradients

    return phi, pullback


def _slope(model, frames, scored, d_loglik):
    """Gradient of ``sum_i d_loglik_i l(X_i)``: all that a space of likelihoods alone needs."""
    weights = scored.gaussians * np.repeat(d_loglik, np.diff(frames.bounds))[:, None]
    zeroth, first, second = weights.sum(0), weights.T @ frames.x, weights.T @ frames.x**2
    d_means = (first - zeroth[:, None] * model.means) / model.variances
    spread = _spread(model, zeroth, first, second)
    return d_means, 0.5 * (spread / model.variances**2 - zeroth[:, None] / model.variances)


def blocks(models, space: str) -> np.ndarray:
    """Block of every feature for a block-diagonal metric, int [P]; as :func:`margo.kernel.scorespace.blocks`."""
    likelihood, by_means, by_variances = parts(space)
    n_likelihood = {"none": 0, "ratio": 1, "each": len(models)}[likelihood]
    n_vectors = sum(len(model.means) for model in models) * (by_means + by_variances)
    vectors = np.repeat(np.arange(n_vectors), models[0].means.shape[1])
    return np.concatenate([np.arange(n_likelihood), n_likelihood + vectors])


def to_vector(models, start) -> np.ndarray:
    """Means in standard deviations of ``start`` and logarithms of variances, model by model, as one vector."""
    return np.concatenate([
        np.concatenate([(model.means / np.sqrt(first.variances)).ravel(), np.log(model.variances).ravel()])
        for model, first in zip(models, start)
    ])  # fmt: skip


def from_vector(vector: np.ndarray, start) -> list[WordModel]:
    """The inverse of :func:`to_vector`."""
    models = []
    for first in start:
        part, vector = vector[: 2 * first.means.size], vector[2 * first.means.size :]
        means, log_variances = part.reshape(2, *first.means.shape)
        models.append(replace(first, means=means * np.sqrt(first.variances), variances=np.exp(log_variances)))
    return models


def gradient_to_vector(models, start, gradients) -> np.ndarray:
    """Chain rule of :func:`from_vector`."""
    return np.concatenate([
        np.concatenate([(d_means * np.sqrt(first.variances)).ravel(), (d_variances * model.variances).ravel()])
        for model, first, (d_means, d_variances) in zip(models, start, gradients)
    ])  # fmt: skip
