"""Large-margin estimation: the exact dual beside the SDP of [LJ07] and its cone program, on the same programs.

Pairs come from random left-to-right paths through 39-dimensional word models (tests/lme_instances.py). Each case runs
in a process of its own, so that its peak memory is its own; seconds are CPU seconds of one thread, the modelling layer
included. ``optimality`` is (bound - objective) / scale of the point each solver returned, recomputed from the entries
with margo's bound, whatever the solver said of itself.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent / "tests"
CASES = {  # words, mixtures, pairs, r^2 / K, soft nu, tolerance, our method, peer
    "D39 K144 N60": (12, 1, 60, 0.1, None, 1e-6, "dual", "sdp"),
    "D39 K1584 N300": (11, 12, 300, 0.01, None, 1e-6, "dual", "socp"),
    "D39 K4224 N1500": (11, 32, 1500, 0.004, None, 1e-6, "auto", "dual"),
    "D39 K528 N20000 soft": (11, 4, 20000, 0.04, 0.4, 1e-3, "auto", None),
}
PEERS = {
    "sdp": "[LJ07] Problem 5 in {solver} through cvxpy",
    "socp": "second-order cone program in {solver} through cvxpy",
    "dual": "margo's own interior point (the external solvers are not run at this size)",
    None: "none run at this size",
}


def measure(name: str) -> dict:
    """One case, in this process."""
    import numpy as np

    sys.path.insert(0, str(TESTS))
    from lme_instances import draw_many
    from margo.estimate.lme import solve
    from margo.runtime.record import own_peak

    words, mixtures, n, radius2, nu, tolerance, method, peer = CASES[name]
    k = words * 12 * mixtures
    soft = None if nu is None else 1 / (nu * n)
    problem = draw_many(np.random.default_rng(2007), n, 39, radius2 * k, soft, words=words, mixtures=mixtures)
    before = own_peak()
    solve(draw_many(np.random.default_rng(0), 5, 3, 1.0, None, words=2), method)  # imports are not the solver's time
    ours = solve(problem, method, tolerance)
    memory = own_peak()
    scale = max(1.0, abs(ours.objective))
    entry = {
        "name": f"LME {name}, gap {tolerance:g}",
        "ours_seconds": ours.seconds,
        "peer": PEERS[peer],
        "peer_seconds": None,
        "ratio": None,
        "method": ours.method,
        "gap": ours.gap,
        "objective": ours.objective,
        "start": float(problem.margins.min()),
        "entries": len(problem.pair),
        "peak_mb": memory,
        "peak_mb_before": before,
    }
    if peer:
        theirs = solve(problem, peer, tolerance)
        entry |= {
            "peer": PEERS[peer].format(solver=theirs.solver),
            "peer_seconds": theirs.seconds,
            "ratio": theirs.seconds / ours.seconds,
            "optimality": (min(ours.bound, theirs.bound) - ours.objective) / scale,
            "peer_optimality": (min(ours.bound, theirs.bound) - theirs.objective) / scale,
            "peer_notes": list(theirs.notes),
        }
    return entry


def entries() -> list[dict]:
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    found = []
    for name in CASES:
        command = [sys.executable, str(Path(__file__).resolve()), name]
        done = subprocess.run(command, env=os.environ | threads, stdout=subprocess.PIPE, text=True, check=True)
        found.append(json.loads(done.stdout))
    return found


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
