"""The interior-point loop, one for both programs, and its linear system: N + 1 unknowns and one equality."""

import numpy as np

BACKOFF = 0.99  # of the way to the nearest boundary


def follow_path(cone, layout, best, tolerance: float, iterations: int, mass: float = 1.0) -> str:
    """Offer iterates (w, q, lambda) to ``best``; returns why the method gave up, "" when its gap is small enough.

    Mehrotra's steps on x = (lambda, C - lambda, nu), the middle part only when soft, with sum lambda = ``mass``, on its
    multipliers y = (margin + xi - rho, xi, 1 - sum q), and on what is the cone's own. A cone (dual.py, conic.py) has

        start(lambda)          -> nu, and the least that rho starts below all margins
        visit(lambda, nu)      -> w, q and the gradient [N + 1]: margins, 1 - sum q
        halt(best, left)       -> why it is no use to go on, or ""; left: what the linear conditions lack
        curvature()            -> H [N + 1, N + 1], the linear constraints' part of the Newton matrix not included
        aim(target, step)      -> what the way to its own centre, less the second order of a step, adds to the gradient
        follow(change)         -> its own step that belongs to a change of (lambda, nu) [N + 1]
        room(step, part)       -> how far that may be taken: a part of what keeps it inside
        move(length, step)     and its product and degree: its share of complementarity and of its terms
    """
    n, soft = layout.n_pairs, layout.soft
    weights = np.full(n, mass / n)
    nu, spread = cone.start(weights)
    w, q, gradient = cone.visit(weights, nu)
    spread = max(gradient[:n].std(), spread)
    rho, ball, high = gradient[:n].min() - spread, max(gradient[n], 0.1), np.full(n, spread)
    if soft is None:
        x, y = np.r_[weights, nu], np.r_[gradient[:n] - rho, ball]
    else:
        x, y = np.r_[weights, soft - weights, nu], np.r_[gradient[:n] - rho + high, high, ball]
    for _ in range(iterations):
        best.offer(w, q, x[:n])
        if best.gap <= tolerance:
            return ""
        stationary = gradient - _fold(y, n, -1)
        stationary[:n] -= rho
        if reason := cone.halt(best, x @ y + np.abs(stationary).max()):
            return reason
        try:
            matrix = cone.curvature()
            matrix.flat[:: n + 2] += _fold(y / x, n, 1)
            system = Bordered(matrix)
        except (np.linalg.LinAlgError, FloatingPointError):
            return "its Newton matrix is singular"

        def newton(residual, aim, system=system, stationary=stationary, x=x, y=y):
            """The step to stationarity, sum lambda = mass, and x dy + y dx = residual."""
            change, drho = system(_fold(residual / x, n, -1) - stationary - aim, mass - x[:n].sum())
            dx = change if soft is None else np.concatenate([change[:n], -change[:n], change[n:]])
            return dx, (residual - y * dx) / x, -drho, cone.follow(change)

        dx, dy, _, own = newton(-x * y, cone.aim(0.0, None))
        longest = min(1.0, room_for(x, dx), room_for(y, dy), cone.room(own, 1.0))
        target = (1 - longest) ** 3 * ((x @ y + cone.product) / (len(x) + cone.degree))
        dx, dy, drho, own = newton(target - x * y - dx * dy, cone.aim(target, own))
        length = min(1.0, BACKOFF * room_for(x, dx), BACKOFF * room_for(y, dy), cone.room(own, BACKOFF))
        if not length > 1e-8:
            return "no step is left"
        x, y, rho = x + length * dx, y + length * dy, rho + length * drho
        cone.move(length, own)
        w, q, gradient = cone.visit(x[:n], x[-1])
    return "it ran out of iterations"


class Bordered:
    """Solves [H e; e' 0] [y; rho] = [f; t], H positive definite [N + 1, N + 1], e one on the N pairs, zero on nu.

    H spans many orders of magnitude near the optimum: it is scaled to a unit diagonal, factored by Cholesky's method
    with as little added to the diagonal as makes that succeed, and every answer is refined against H itself.
    """

    def __init__(self, matrix: np.ndarray):
        from scipy.linalg.lapack import dpotrf

        self.scale = 1 / np.sqrt(matrix.diagonal())
        matrix *= self.scale[:, None]
        matrix *= self.scale
        self.matrix = matrix
        added = 0.0
        while True:
            lifted = matrix.copy()
            lifted.flat[:: len(matrix) + 1] += added
            self.factor, info = dpotrf(lifted, lower=1, overwrite_a=1)
            if info == 0:
                break
            added = max(10 * added, 1e-14)
            if added > 1e-2:
                raise np.linalg.LinAlgError("the Newton matrix is not positive definite")
        self.ones = np.r_[np.ones(len(matrix) - 1), 0.0]
        self.along = self._solve(self.ones)
        self.reach = self.ones @ self.along

    def _solve(self, right: np.ndarray) -> np.ndarray:
        from scipy.linalg.lapack import dpotrs

        right = right * self.scale
        answer = dpotrs(self.factor, right, lower=1)[0]
        for _ in range(2):
            answer += dpotrs(self.factor, right - self.matrix @ answer, lower=1)[0]
        return answer * self.scale

    def __call__(self, right: np.ndarray, total: float) -> tuple[np.ndarray, float]:
        free = self._solve(right)
        rho = (self.ones @ free - total) / self.reach
        return free - rho * self.along, rho


def _fold(flat: np.ndarray, n: int, sign: int) -> np.ndarray:
    """The parts for lambda and nu [N + 1], those for C - lambda added to lambda's with ``sign``."""
    out = np.concatenate([flat[:n], flat[-1:]])
    if len(flat) > n + 1:
        out[:n] += sign * flat[n : 2 * n]
    return out


def room_for(x: np.ndarray, dx: np.ndarray) -> float:
    """The longest step along dx that keeps x non-negative."""
    falling = dx < 0
    return float((-x[falling] / dx[falling]).min()) if falling.any() else np.inf
