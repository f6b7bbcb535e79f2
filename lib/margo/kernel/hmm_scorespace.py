"""Score-spaces of hidden Markov models: one utterance -> one vector ([L04] 4.5, 5.4).

The same layout as for mixtures (:mod:`margo.kernel.scorespace`). The derivatives are moments of the frames under the
posteriors, so their cost is that of forward-backward and matrix products; the products with second derivatives that
training needs come from one more pass over the chain instead of the O(E^2 T^2) table of [L04]. A frame has one or two
Gaussians that matter: loops over those that have some posterior are faster here than products of whole matrices.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numba import njit

from margo.errors import MargoError
from margo.gaussian.mixtures import share_components
from margo.gaussian.pool import GaussianPool
from margo.kernel import scorespace
from margo.kernel.chain import Occupancy, chain_of, occupy
from margo.model.graph import Arcs, align_graph
from margo.model.hmm import HmmSet


@dataclass(frozen=True, eq=False)
class WordModel:
    """A chain (:func:`margo.kernel.chain.make_chain`) whose states 0 .. S-1 are the mixtures of ``pool`` (diagonal
    Gaussians, the parameters), the rest fixed (silence)."""

    chain: Arcs
    pool: GaussianPool


@dataclass(frozen=True, eq=False)
class Frames:
    """Utterances ``bounds[i]:bounds[i + 1]`` of ``x`` [T, D]; ``fixed`` [T, F] scores the states no model owns."""

    x: np.ndarray
    bounds: np.ndarray
    fixed: np.ndarray

    @property
    def count(self) -> int:
        return len(self.bounds) - 1

    @cached_property
    def centre(self) -> np.ndarray:
        return self.x.mean(0)

    @cached_property
    def products(self) -> np.ndarray:
        """[T, 2 D]: squares and frames about their centre, which densities of any Gaussians are products with."""
        y = self.x - self.centre
        return np.concatenate([y**2, y], axis=1)

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
    graph, fixed = align_graph(hmms, [word]), silence_states(hmms)
    own = np.array([state for state in graph.states if state not in fixed])
    place = {int(state): number for number, state in enumerate([*own, *fixed])}
    chain = chain_of(graph)
    column = np.array([place[int(graph.states[s])] for s in chain.column])
    return WordModel(chain._replace(column=column), hmms.pool.take(own))


@dataclass(frozen=True, eq=False)
class _Scored:
    """One model on all utterances: posteriors, and the moments of the frames under them."""

    occupancy: Occupancy
    shares: np.ndarray  # [T, K]: posterior of each component within its state
    gaussians: np.ndarray  # gamma [T, K] ([L04] (48))
    moments: tuple  # zeroth [N, K], first [N, K, D], second [N, K, D]


def _to_states(model: WordModel, nodes: np.ndarray) -> np.ndarray:
    """Sum over the nodes of each own state: [T, E] -> [T, S]."""
    return nodes @ (model.chain.column[:, None] == np.arange(model.pool.n_states)).astype(float)


@njit(cache=True)
def _moments(x, weights, bounds):
    """Zeroth [N, K], first and second [N, K, D] moments of the frames of each utterance under ``weights`` [T, K]."""
    count, gaussians, dims = len(bounds) - 1, weights.shape[1], x.shape[1]
    zeroth, first = np.zeros((count, gaussians)), np.zeros((count, gaussians, dims))
    second = np.zeros((count, gaussians, dims))
    for i in range(count):
        for t in range(bounds[i], bounds[i + 1]):
            for k in range(gaussians):
                weight = weights[t, k]
                if weight != 0.0:
                    zeroth[i, k] += weight
                    for d in range(dims):
                        part = weight * x[t, d]
                        first[i, k, d] += part
                        second[i, k, d] += part * x[t, d]
    return zeroth, first, second


@njit(cache=True)
def _rates(x, gaussians, bounds, constant, linear, quadratic):
    """``constant_ik + linear_ik . x_t + quadratic_ik . x_t^2`` [T, K] of the Gaussians that have some of frame t."""
    rates = np.zeros_like(gaussians)
    for i in range(len(bounds) - 1):
        for t in range(bounds[i], bounds[i + 1]):
            for k in range(gaussians.shape[1]):
                if gaussians[t, k] != 0.0:
                    rate = constant[i, k]
                    for d in range(x.shape[1]):
                        rate += x[t, d] * (linear[i, k, d] + x[t, d] * quadratic[i, k, d])
                    rates[t, k] = rate
    return rates


def _scored(model: WordModel, frames: Frames) -> _Scored:
    pool = model.pool
    quadratic, linear, constants = pool.covariances.exponents(pool.means - frames.centre)
    states = frames.products @ np.concatenate([quadratic, linear], axis=1).T + (constants + pool.log_weights)
    shares = np.ones_like(states)
    if pool.n_gaussians > pool.n_states:
        states, shares = share_components(states, pool.offsets)
    occupancy = occupy(model.chain, np.concatenate([states, frames.fixed], axis=1), frames.bounds)
    gaussians = shares * _to_states(model, occupancy.nodes)[:, pool.owners]
    return _Scored(occupancy, shares, gaussians, _moments(frames.x, gaussians, frames.bounds))


def _derivatives(pool: GaussianPool, zeroth, first, second):
    """Of ``sum_t gamma_t log w N(x_t)`` by means and variances [..., K, D], and by the weights' logits [..., K] (what
    they get of their state's frames less what they promise), of moments ([L04] (31), (32))."""
    n, mu, v = zeroth[..., None], pool.means, pool.variances
    spread = second - 2.0 * first * mu + n * mu**2  # sum_t gamma (x - mu)^2
    whole = np.add.reduceat(zeroth, pool.offsets[:-1], axis=-1)[..., pool.owners]
    return (first - n * mu) / v, 0.5 * (spread / v**2 - n / v), zeroth - np.exp(pool.log_weights) * whole


def _gradient(model: WordModel, frames: Frames, scored: _Scored, d_loglik, on, window):
    """Gradient of ``sum_i d_loglik_i l(X_i) + on_i . grad l(X_i)`` by means and variances ([L04] (46), (76), (82));
    ``on`` is None for likelihoods alone, else by means and variances [N, K, D] and weights [N, K].

    ``rates[t, k] = on_k . g_k(x_t)`` is how fast component k's log density at frame t moves along ``on``; its
    covariance with the component's occupancy weights the component's own derivatives, and the Gaussian's second
    derivatives act on ``on`` under the posteriors.
    """
    pool, x, weights = model.pool, frames.x, np.repeat(d_loglik, np.diff(frames.bounds))[:, None]
    everything = np.array([0, len(x)])
    if on is None:
        return [part[0] for part in _derivatives(pool, *_moments(x, scored.gaussians * weights, everything))[:2]]
    (on_mean, on_variance, on_weight), mu, v = on, pool.means, pool.variances
    shape, shares = (frames.count, *mu.shape), np.exp(pool.log_weights)
    linear, quadratic = on_mean / v - on_variance * mu / v**2, 0.5 * on_variance / v**2
    constant = (0.5 * on_variance * (mu**2 / v**2 - 1.0 / v) - on_mean * mu / v).sum(2)
    constant = constant + on_weight - np.add.reduceat(shares * on_weight, pool.offsets[:-1], axis=1)[:, pool.owners]
    slopes = (np.broadcast_to(slope, shape) for slope in (linear, quadratic))
    rates = _rates(x, scored.gaussians, frames.bounds, constant, *slopes)
    state_rates = np.add.reduceat(scored.shares * rates, pool.offsets[:-1], axis=1)
    node_rates = np.concatenate([state_rates, np.zeros_like(frames.fixed)], axis=1)[:, model.chain.column]
    # from other frames through the chain, and from the frame's own component
    response = _to_states(model, scored.occupancy.response(node_rates, window))[:, pool.owners] * scored.shares
    weights = response + scored.gaussians * (rates + weights)
    d_means, d_variances = (part[0] for part in _derivatives(pool, *_moments(x, weights, everything))[:2])
    n, by_mean, by_variance = scored.moments[0][..., None], *_derivatives(pool, *scored.moments)[:2]
    # the derivatives of the derivatives under fixed posteriors: -n / v, -by_mean / v and
    # n / 2 v^2 - spread / v^3 = -n / 2 v^2 - 2 by_variance / v
    d_means -= ((on_mean * n + on_variance * by_mean) / v).sum(0)
    d_variances -= (on_mean * by_mean / v + on_variance * (0.5 * n / v**2 + 2.0 * by_variance / v)).sum(0)
    return d_means, d_variances


def score(models, frames: Frames, space: str, window: int | None = None, per_frame: bool = True):
    """``(phi [N, P], pullback)`` of utterances in the score-space of word ``models`` ([L04] (18)-(25), (45)).

    ``pullback(d_phi [N, P])`` returns the gradient as one ``(d_means [K, D], d_variances [K, D])`` a model. ``window``
    keeps only time correlations up to that many frames apart in it (None: all). ``per_frame`` divides each
    utterance's scores by its length, so that long utterances do not rule the kernel.
    """
    likelihoods, parts = scorespace.layout(space, len(models))
    if "second" in parts:
        raise MargoError(f"score-space {space}: second derivatives are of mixtures, not of hidden Markov models")
    wanted = [name in parts for name in ("mean", "var", "weight")]
    all_scored = [_scored(model, frames) for model in models]
    scale = 1.0 / np.diff(frames.bounds)[:, None] if per_frame else np.ones((frames.count, 1))
    columns = [np.stack([scored.occupancy.log_likelihoods for scored in all_scored], axis=1) @ likelihoods]
    for model, scored in zip(models, all_scored):
        found = zip(_derivatives(model.pool, *scored.moments), wanted)
        columns += [part.reshape(frames.count, -1) for part, taken in found if taken]

    def pullback(d_phi: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        d_likelihoods, rest = np.split(d_phi * scale, [likelihoods.shape[1]], axis=1)
        gradients = []
        for model, scored, d_loglik in zip(models, all_scored, (d_likelihoods @ likelihoods.T).T):
            shapes = [model.pool.means.shape] * 2 + [(model.pool.n_gaussians,)]
            on = [np.zeros((frames.count, *(1,) * len(shape))) for shape in shapes]
            for kind in np.flatnonzero(wanted):
                part, rest = np.split(rest, [np.prod(shapes[kind])], axis=1)
                on[kind] = part.reshape(-1, *shapes[kind])
            on[2] = np.broadcast_to(on[2], (frames.count, model.pool.n_gaussians))
            gradients.append(_gradient(model, frames, scored, d_loglik, on if any(wanted) else None, window))
        return gradients

    return np.concatenate(columns, axis=1) * scale, pullback


def blocks(models, space: str) -> np.ndarray:
    """Block of every feature for a block-diagonal metric, int [P]; as :func:`margo.kernel.scorespace.blocks`."""
    return scorespace.blocks(space, [model.pool.n_gaussians for model in models], models[0].pool.dimension)


def to_vector(models, start) -> np.ndarray:
    """The vectors of :func:`margo.kernel.scorespace.to_vector`, model by model, as one."""
    return np.concatenate([scorespace.to_vector(model.pool, first.pool) for model, first in zip(models, start)])


def from_vector(vector: np.ndarray, start) -> list[WordModel]:
    """The inverse of :func:`to_vector`."""
    parts = np.split(vector, np.cumsum([2 * first.pool.means.size for first in start])[:-1])
    return [replace(first, pool=scorespace.from_vector(part, first.pool)) for part, first in zip(parts, start)]


def gradient_to_vector(models, start, gradients) -> np.ndarray:
    """Chain rule of :func:`from_vector`."""
    return np.concatenate([scorespace.gradient_to_vector(model.pool, first.pool, *gradient)
                           for model, first, gradient in zip(models, start, gradients)])  # fmt: skip
