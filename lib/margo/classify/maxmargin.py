"""Max-margin Gaussians [DA08]: the problem, its model and decision rule, and projected gradient as the baseline.

Each Gaussian r scores a sample by ``f_r(x) = x' psi_r x + s nu_r . x + s delta_r`` with psi_r positive semidefinite
(z' Phi_r z of (7)); the smallest score wins. Training minimises, for one slack per sample as in (9),

    1/2 sum_r (|psi_r|^2 + |nu_r|^2 + delta_r^2) + C sum_i max(0, max_{r not of y_i} 1 + f_{r_i}(x_i) - f_r(x_i)),

r_i being the Gaussian that EM holds responsible for sample i. The scale s lets nu and delta carry a ridge: s to
infinity is the paper's problem, which leaves them free. Samples are centred and scaled to mean squared length 1
first, so that C and s mean the same for any data; before that, each feature may be divided by a power of its standard
deviation, since the ridge bears hardest on the matrices of features that vary little.

In the packed form a symmetric matrix is its upper triangle, off-diagonals times sqrt 2, so that products of packed
vectors are those of the matrices; P = D (D + 1) / 2 + D + 1.
"""

from dataclasses import dataclass

import numpy as np

from margo.classify.gmm import Classifier, check_samples, log_posteriors
from margo.errors import MargoError
from margo.gaussian.covariances import filled, patterns
from margo.gaussian.mixtures import log_components, responsibilities
from margo.knobs import Knobs, knob

SAMPLES = 256  # scored at once: their products of features stay in the cache
POWER = 8  # of t, the weights of iterates in their mean
NEGLIGIBLE = 1e-9  # Gaussians with a smaller posterior add nothing to an expectation


@dataclass(frozen=True)
class MarginOptions(Knobs):
    """Max-margin Gaussians [DA08]."""

    method: str = knob("smo", "sequential minimal optimisation, or projected gradient for comparison", ("smo", "grad"))
    faithful: bool = knob(
        False, "the paper's alternation instead of the joint problem", needs={"method": ("smo",)}
    )
    every: bool = knob(
        False, "Sha and Saul's objective (10): a hinge for every rival, not the nearest alone",
        needs={"method": ("grad",)},
    )
    cost: float = knob(1.0, "C: price of a margin violation", above=0)
    scale: float = knob(0.25, "s: weight of the linear and constant features; large: they carry no ridge", above=0)
    balance: float = knob(
        0.4, "features are divided by their standard deviation to this power (0: not, 1: wholly)", least=0, most=1
    )
    epochs: int = knob(60, "most passes over the data", least=1)
    gap: float = knob(0.005, "stop at this relative duality gap", least=0)


@dataclass(frozen=True)
class MaxMargin:
    """A max-margin classifier; those Gaussians of class c are ``offsets[c]`` to ``offsets[c + 1]``."""

    centre: np.ndarray  # [D]
    scale: np.ndarray  # [D]
    offsets: np.ndarray  # [C + 1]
    psi: np.ndarray  # [K, D, D], positive semidefinite, for samples (x - centre) / scale
    linear: np.ndarray  # [K, D]
    constant: np.ndarray  # [K]
    start: Classifier  # of maximum likelihood, where training started: what missing values are expected from

    @property
    def classes(self) -> int:
        return len(self.offsets) - 1


@dataclass(frozen=True)
class Problem:
    """Scaled samples and who must beat whom."""

    x: np.ndarray  # [N, D]
    y: np.ndarray  # [N]
    responsible: np.ndarray  # [N]: r_i
    offsets: np.ndarray  # [C + 1]
    centre: np.ndarray
    scale: np.ndarray
    cost: float
    s: float
    start: Classifier

    def rivals(self, scores) -> np.ndarray:
        """``scores`` [N, K] of each sample's rivals, infinite for the Gaussians of its own class."""
        return np.where(self.start.pool.owners == self.y[:, None], np.inf, scores)


def pose(model: Classifier, x, y, cost: float, s: float, balance: float = 0.0) -> Problem:
    """The problem whose responsible Gaussians come from the maximum-likelihood ``model``.

    Features are divided by their standard deviation to the power ``balance``, then all by one number.
    """
    x, y = check_samples(x, y, model.classes)
    if np.isnan(x).any():
        raise MargoError(f"{int(np.isnan(x).any(axis=1).sum())} training samples have missing values: "
                         "max-margin training needs complete samples; classification takes missing values")  # fmt: skip
    if (y < 0).any():
        raise MargoError(f"{int((y < 0).sum())} samples have no label; max-margin training needs a label for each")
    responsible = responsibilities(model.pool, x, y)[0].argmax(axis=1)
    centre = x.mean(axis=0)
    spread = x.std(axis=0)
    scale = np.where(spread > 0, spread, 1.0) ** balance
    scale = scale * np.sqrt((((x - centre) / scale) ** 2).sum(axis=1).mean())
    return Problem((x - centre) / scale, y, responsible, model.pool.offsets, centre, scale, cost, s, model)


def pack_matrices(matrices) -> np.ndarray:
    """[K, D, D] to [K, D (D + 1) / 2]."""
    rows, columns = np.triu_indices(matrices.shape[-1])
    return matrices[:, rows, columns] * np.where(rows == columns, 1.0, np.sqrt(2.0))


def unpack_matrices(packed, dims: int) -> np.ndarray:
    rows, columns = np.triu_indices(dims)
    matrices = np.empty((len(packed), dims, dims))
    matrices[:, rows, columns] = packed / np.where(rows == columns, 1.0, np.sqrt(2.0))
    matrices[:, columns, rows] = matrices[:, rows, columns]
    return matrices


def unpack(problem: Problem, packed):
    """``(psi [K, D, D], s nu [K, D], s delta [K])`` of packed parameters [K, P]."""
    dims = problem.x.shape[1]
    half = dims * (dims + 1) // 2
    return unpack_matrices(packed[:, :half], dims), problem.s * packed[:, half:-1], problem.s * packed[:, -1]


def score_samples(x, psi, linear, constant) -> np.ndarray:
    """``f_r(x_n)`` [N, K] of complete scaled samples, under what :func:`unpack` returns.

    A product of all triangles of psi with the products of features, made for a few samples at a time: of many Gaussians
    that takes less than half the time of ``x' psi x`` of one after the other.
    """
    dims = x.shape[1]
    rows, columns = np.triu_indices(dims)
    packed = psi[:, rows, columns] * np.where(rows == columns, 1.0, 2.0)
    starts = np.flatnonzero(rows == columns)
    result, room = np.empty((len(x), len(psi))), np.empty((len(rows), SAMPLES))
    for first in range(0, len(x), SAMPLES):
        part = np.ascontiguousarray(x[first : first + SAMPLES].T)
        products = room[:, : part.shape[1]]
        for d, start in enumerate(starts):
            np.multiply(part[d:], part[d], out=products[start : start + dims - d])
        result[first : first + SAMPLES] = (packed @ products + linear @ part).T + constant
    return result


def pull(problem: Problem, coefficients) -> np.ndarray:
    """[K, P]: ``sum_i coefficients[i, r] phi(x_i)``, phi being the packed x x', s x and s."""
    matrices = np.stack([(problem.x[w != 0] * w[w != 0][:, None]).T @ problem.x[w != 0] for w in coefficients.T])
    linear, constant = coefficients.T @ problem.x, coefficients.sum(axis=0)[:, None]
    return np.concatenate([pack_matrices(matrices), problem.s * linear, problem.s * constant], axis=1)


def project(packed, dims: int) -> np.ndarray:
    """Packed parameters [K, P] with each psi replaced by the nearest positive semidefinite matrix."""
    half = dims * (dims + 1) // 2
    values, vectors = np.linalg.eigh(unpack_matrices(packed[:, :half], dims))
    clipped = (vectors * np.maximum(values, 0.0)[:, None, :]) @ vectors.transpose(0, 2, 1)
    return np.concatenate([pack_matrices(clipped), packed[:, half:]], axis=1)


def hinges(problem: Problem, scores, every: bool = False):
    """The sum of hinges of ``scores`` [N, K], and ``coefficients[N, K]``: minus its derivative by the scores.

    A sample's nearest rival alone counts, as its one slack in (9) has it, or ``every`` rival by itself, as in (10).
    """
    rows = np.arange(len(scores))
    gaps = 1.0 + scores[rows, problem.responsible][:, None] - problem.rivals(scores)
    coefficients = np.zeros_like(scores)
    if every:
        coefficients[gaps > 0] = 1.0
    else:
        nearest = gaps.argmax(axis=1)
        coefficients[rows, nearest] = gaps[rows, nearest] > 0
    total = float(gaps[coefficients > 0].sum())
    coefficients[rows, problem.responsible] = -coefficients.sum(axis=1)
    return total, coefficients


def objective(problem: Problem, packed, every: bool = False) -> float:
    """The primal objective, of (9) or, with ``every``, of (10); ``packed`` must be positive semidefinite to count."""
    scores = score_samples(problem.x, *unpack(problem, packed))
    return 0.5 * float((packed**2).sum()) + problem.cost * hinges(problem, scores, every)[0]


def to_model(problem: Problem, packed) -> MaxMargin:
    return MaxMargin(problem.centre, problem.scale, problem.offsets, *unpack(problem, packed), problem.start)


def from_classifier(problem: Problem, model: Classifier) -> np.ndarray:
    """Packed parameters whose scores are -2 log of the likelihoods of ``model``, up to one common number."""
    pool = model.pool
    inverse = np.linalg.inv(pool.covariances.dense())
    means = pool.means - problem.centre
    psi = inverse * np.outer(problem.scale, problem.scale)
    linear = -2.0 * (inverse @ means[:, :, None])[:, :, 0] * problem.scale
    log_p = pool.log_weights + model.log_priors[pool.owners] + 0.5 * np.linalg.slogdet(inverse)[1]
    constant = np.einsum("kd,kde,ke->k", means, inverse, means) - 2.0 * log_p
    tail = np.concatenate([linear, (constant - constant.mean())[:, None]], axis=1) / problem.s
    return np.concatenate([pack_matrices(psi), tail], axis=1)


def descend(problem: Problem, start, steps: int, every=False, clock=None, seconds=np.inf, goal=0.0):
    """Projected subgradient after Sha & Saul, on (9) or, with ``every``, on their own (10): ``(packed, reports)``.

    The hinges have kinks, where no short step along a subgradient need lower the objective: steps are 1 / (t + t0), as
    the ridge's strong convexity asks. The best is kept of all iterates and of their means (Shamir and Zhang 2013),
    which come closer and cost little, scores being linear in the parameters; they are weighted by a power of t,
    since the first iterates are far off. t0 makes the first step as long as the parameters, and no iterate is longer
    than ``sqrt(2 objective)``, since no solution is. The first parameters are ``start`` times the best of a few common
    factors (scores of a likelihood are far larger than margins of 1). ``clock`` (a function that returns seconds) dates
    the reports and with ``seconds`` ends it by time, ``goal`` by the objective reached, for comparisons.
    """
    began, dims, ahead = clock() if clock else 0.0, problem.x.shape[1], None
    packed = min((start * part for part in 10.0 ** np.arange(-4.0, 1.0)), key=lambda p: objective(problem, p, every))
    best, best_value, reports = packed, np.inf, []
    mean, mean_scores = np.zeros_like(packed), 0.0
    for t in range(1, steps + 1):
        scored = score_samples(problem.x, *unpack(problem, packed))
        share = (1.0 + POWER) / (t + POWER)
        mean, mean_scores = mean + share * (packed - mean), mean_scores + share * (scored - mean_scores)
        slack, coefficients = hinges(problem, scored, every)
        for one, its_slack in ((packed, slack), (mean, hinges(problem, mean_scores, every)[0])):
            value = 0.5 * float((one**2).sum()) + problem.cost * its_slack
            if value < best_value:
                best, best_value = one, value
        reports.append({"iteration": t, "objective": -best_value, "frames": len(problem.x)})
        if clock:
            reports[-1]["cpu_seconds"] = clock() - began
            if reports[-1]["cpu_seconds"] > seconds or best_value <= goal:
                break
        gradient = packed - problem.cost * pull(problem, coefficients)
        ahead = ahead or np.linalg.norm(gradient) / max(np.linalg.norm(packed), 1e-300)
        packed = project(packed - gradient / (t + ahead), dims)
        packed = packed * min(1.0, np.sqrt(2.0 * best_value / max(float((packed**2).sum()), 1e-300)))
    return best, reports


def scores(model: MaxMargin, x) -> np.ndarray:
    """``f_r(x_n)`` [N, K]; where values are missing, its expectation under the classifier that training started from.

    Margins leave no density behind to integrate (``exp(-f / 2)`` has lost its scale: on USPS with half the features
    missing it errs on 87 %), so the missing values come from the maximum-likelihood mixture: f is quadratic, hence its
    expectation given the observed values is exact, from conditional means and covariances.
    """
    if x.shape[1] != len(model.centre):
        raise MargoError(f"samples have {x.shape[1]} features, the model was trained on {len(model.centre)}")
    result = np.empty((len(x), len(model.psi)))
    for rows, seen in patterns(x):
        result[rows] = _complete(model, x[rows]) if seen.all() else _expected(model, x[rows], seen)
    return result


def _complete(model: MaxMargin, x) -> np.ndarray:
    return score_samples((x - model.centre) / model.scale, model.psi, model.linear, model.constant)


def _expected(model: MaxMargin, x, seen) -> np.ndarray:
    """Expected scores [N, K] of samples in which the same values are ``seen``."""
    pool, gap = model.start.pool, ~seen
    posteriors = np.exp(log_posteriors(log_components(pool, x) + model.start.log_priors[pool.owners]))
    spread = pool.covariances.dense()
    expected = np.zeros((len(x), len(model.psi)))
    for k in np.flatnonzero(posteriors.max(axis=0) > NEGLIGIBLE):
        whole, rest = filled(x, seen, pool.means[k], spread[k])
        rest = rest / np.outer(model.scale[gap], model.scale[gap])
        trace = np.einsum("rij,ij->r", model.psi[:, gap][:, :, gap], rest)
        expected += posteriors[:, k, None] * (_complete(model, whole) + trace)
    return expected


def log_joint(model: MaxMargin, x) -> np.ndarray:
    """Minus half the smallest score of each class [N, C]: the rule of (7), in the place of a joint log probability."""
    return -0.5 * np.minimum.reduceat(scores(model, x), model.offsets[:-1], axis=1)
