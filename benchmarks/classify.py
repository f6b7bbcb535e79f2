"""GMM classifiers beside scikit-learn's mixtures, a fully covariant classifier with gaps, and projected gradient.

CPU seconds of one process, compilation excluded. For max-margin training the peer is the projected gradient of Sha &
Saul: the entry gives SMO's seconds to a relative duality gap of 1 % and the seconds the gradient takes to come within
10 % of SMO's objective, or its limit where it does not.
"""

import time

import numpy as np

from margo.classify import gmm, hybrid, maxmargin, smo
from margo.classify.gmm import Classifier, GmmOptions, log_joint, marginalise
from margo.classify.hybrid import HybridOptions
from margo.classify.maxmargin import MarginOptions
from margo.gaussian.covariances import LowRank
from margo.gaussian.pool import GaussianPool

GRADIENT_LIMIT = 40.0


def entries() -> list[dict]:
    return [em_full(), *hybrid_epoch(), ebw_pass(), missing_sample(), max_margin()]


def entry(name: str, ours: float, peer: str, theirs: float, **more) -> dict:
    return {"name": name, "ours_seconds": ours, "peer": peer, "peer_seconds": theirs, "ratio": theirs / ours, **more}


def spent(function, repeats: int = 1) -> float:
    began = time.process_time()
    for _ in range(repeats):
        function()
    return (time.process_time() - began) / repeats


def digits_like(rng, samples: int, dims: int = 50, classes: int = 10):
    """Ten overlapping classes, each a turned Gaussian."""
    y = np.arange(samples) % classes
    turns = rng.normal(size=(classes, dims, dims)) / np.sqrt(dims)
    means = 0.6 * rng.normal(size=(classes, dims))
    x = rng.normal(size=(samples, dims))
    for c in range(classes):
        x[y == c] = x[y == c] @ turns[c] + means[c]
    return x, y


def em_full() -> dict:
    """Twenty EM iterations of ten classes, four full covariances each."""
    from sklearn.mixture import GaussianMixture

    rng = np.random.default_rng(0)
    x, y = digits_like(rng, 20000)
    options = GmmOptions(mixtures=4, covariance="full", iterations=20, tolerance=-np.inf)

    def margo():
        gmm.fit(x, y, options, np.random.default_rng(0))

    def peer():
        for c in range(10):
            GaussianMixture(4, max_iter=20, tol=0.0, reg_covar=1e-3, random_state=0).fit(x[y == c])

    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it says that it did not converge, as asked
        rounds = [(spent(margo), spent(peer)) for _ in range(3)]  # in turns, so that both meet the same machine
    ours, theirs = map(min, zip(*rounds))
    return entry("EM, 20000 x 50, 10 classes x 4 full", ours, "scikit-learn GaussianMixture", theirs)


def hybrid_epoch() -> list[dict]:
    """An epoch of 50000 x 50, 5 components a class, rank 25. Peers: a network with a hidden layer of K R units, same
    batches; and an iteration of EM with as many full covariances."""
    from sklearn.mixture import GaussianMixture
    from sklearn.neural_network import MLPClassifier

    rng = np.random.default_rng(0)
    x, y = digits_like(rng, 50000)
    model, _ = gmm.fit(x[:5000], y[:5000], GmmOptions(mixtures=5, covariance="full", iterations=3), rng)
    options = HybridOptions()
    state, layout = hybrid.begin(model, options)
    single = x.astype(np.float32)
    hybrid.run_epoch(state, layout, single[:200], y[:200], options, 1, np.random.default_rng(0))  # compiles
    peer = MLPClassifier((1250,), batch_size=100, random_state=0)
    mixture = GaussianMixture(50, random_state=0)
    mixture._initialize(x, np.eye(50)[np.arange(len(x)) % 50])  # so that the iteration alone is timed
    rivals = (lambda: hybrid.run_epoch(state, layout, single, y, options, 1, np.random.default_rng(0)),
              lambda: peer.partial_fit(single, y, classes=np.arange(10)),
              lambda: mixture._m_step(x, mixture._e_step(x)[1]))  # fmt: skip
    ours, theirs, iteration = map(min, zip(*([spent(one) for one in rivals] for _ in range(3))))  # in turns
    name = "hybrid epoch, 50000 x 50, K 50, R 25"
    return [entry(name, ours, "scikit-learn MLPClassifier epoch", theirs),
            entry(name, ours, "scikit-learn GaussianMixture iteration, 50 full", iteration)]  # fmt: skip


def ebw_pass() -> dict:
    """An iteration over 1.8 million made-up frames of 20 features, 4 classes of 100 Gaussians, as many as [PW10] has of
    TIMIT, in the margin's criterion, which costs more than the conditional likelihood. The peer: a hundredth of the 40
    minutes that 100 iterations may take on one core."""
    from margo.classify import ebw_training

    rng = np.random.default_rng(0)
    x, y = digits_like(rng, 1_800_000, 20, 4)
    means = np.concatenate([x[y == c][:100] for c in range(4)])
    pool = GaussianPool(means, np.ones((400, 20)), np.full(400, -np.log(100.0)), np.arange(0, 401, 100))
    options = ebw_training.EbwOptions()
    state = ebw_training.begin(Classifier(pool, np.log(np.full(4, 0.25))), x, y, options)
    ours = spent(lambda: ebw_training.iterate(state, x, y, options))
    return entry("EBW iteration, 1800000 x 20, 4 x 100 diagonal", ours, "a hundredth of 40 minutes", 24.0)


def missing_sample() -> dict:
    """One sample of 784 values, half of them missing, 170 components of rank 25; the peer cuts full covariances."""
    rng = np.random.default_rng(0)
    K, D, R = 170, 784, 25
    means, covariances = rng.normal(size=(K, D)), LowRank(rng.uniform(0.5, 2, (K, D)), 0.3 * rng.normal(size=(K, D, R)))
    pool = GaussianPool(means, covariances, np.full(K, -np.log(17.0)), np.arange(0, K + 1, 17))
    model = Classifier(pool, np.log(np.full(10, 0.1)))
    x = rng.normal(size=(1, D))
    x[0, rng.permutation(D)[: D // 2]] = np.nan
    seen = ~np.isnan(x[0])
    few = Classifier(pool.take([0]), model.log_priors[:1])
    log_joint(model, x)
    ours = spent(lambda: log_joint(model, x), 20)
    theirs = 10 * spent(lambda: log_joint(marginalise(few, seen), x[:, seen]))
    return entry("one sample of 784, half missing, 170 DPLR", ours, "full covariances cut and factorised", theirs)


def max_margin() -> dict:
    """Ten classes, one Gaussian each, 6000 x 30."""
    rng = np.random.default_rng(0)
    x, y = digits_like(rng, 6000, 30)
    model, _ = gmm.fit(x, y, GmmOptions(covariance="full", ridge=0.1), rng)
    problem = maxmargin.pose(model, x, y, 1.0, 0.25)
    smo.run_epoch(smo.begin(problem), problem, np.arange(2))
    found = []
    ours = spent(lambda: found.append(smo.fit(problem, MarginOptions(gap=0.01), np.random.default_rng(0))[0]))
    start, goal = maxmargin.from_classifier(problem, model), 1.1 * found[0].primal
    _, lines = maxmargin.descend(problem, start, 10**6, False, time.process_time, GRADIENT_LIMIT, goal)
    theirs, reached = lines[-1]["cpu_seconds"], -lines[-1]["objective"]
    return entry("max-margin, 6000 x 30, to a gap of 1 %", ours, "projected gradient to within 10 %", theirs,
                 gap=found[0].gap, objective=found[0].primal, peer_objective=reached)  # fmt: skip


if __name__ == "__main__":
    import json

    print(json.dumps(entries(), indent=1))
