"""Primal-dual interior point on the second-order cone program, w_k and q_k = |w_k|^2 + v_k kept explicit.

The cone of Gaussian k holds s_k = ((q_k / c + c) / 2, (q_k / c - c) / 2, w_k), for s_0^2 - s_1^2 - |w_k|^2 = v_k; its
dual member is z_k = (z_0, z_1, -b_k) with z_0 + z_1 = 2 c a_k, where c (z_0 - z_1) / 2 bounds |b_k|^2 / (4 a_k) from
above. The rest is linear: margin_m + xi_m - rho against lambda_m, xi_m against C - lambda_m, 1 - sum q against nu. Both
sides have interior points whatever the data, so iterates start feasible; what rounding takes away from that is put
back by the next step. Steps are Mehrotra's with the scaling of Nesterov and Todd; the cones' blocks are inverted in
closed form, which leaves the N + 1 variables (lambda, nu) of the dual. Nothing here needs a_k to stay away from zero:
this is the method for programs with v_k > 0.
"""

from dataclasses import dataclass

import numpy as np

from margo.estimate.lme.certificate import dual_value
from margo.estimate.lme.layout import Curvature, Layout, pull, push
from margo.estimate.lme.newton import Bordered, expand, fold, room_for
from margo.estimate.lme.progress import Best

ITERATIONS = 100
BACKOFF = 0.99  # of the way to the nearest boundary


@dataclass
class Cones:
    """Members of the product cone: flat [N (+ N) + 1] non-negative numbers, round [U, D + 2] second-order cones."""

    flat: np.ndarray
    round: np.ndarray

    def plus(self, step: float, other: "Cones") -> "Cones":
        return Cones(self.flat + step * other.flat, self.round + step * other.round)

    def dot(self, other: "Cones") -> float:
        return self.flat @ other.flat + np.einsum("kd,kd->", self.round, other.round)


def solve_conic(layout: Layout, best: Best, tolerance: float) -> None:
    """Offer iterates to ``best`` until its gap is at most ``tolerance`` or no step is left."""
    n, c = layout.n_pairs, 1 / np.sqrt(len(layout.used))
    curvature = Curvature(layout)
    s, z, rho = _start(layout, c)
    degree = len(s.flat) + 2 * len(s.round)
    for _ in range(ITERATIONS):
        best.offer(s.round[:, 2:], c * (s.round[:, 0] + s.round[:, 1]), z.flat[:n])
        if best.gap <= tolerance:
            break
        try:
            newton = _Newton(layout, curvature, c, s, z, rho)
        except (np.linalg.LinAlgError, FloatingPointError):
            break
        mu = s.dot(z) / degree
        ds, dz, _ = newton.step(newton.residual(0.0))
        longest = min(1.0, _room(s, ds), _room(z, dz))
        ds, dz, drho = newton.step(newton.residual((1 - longest) ** 3 * mu, ds, dz))
        step = min(1.0, BACKOFF * _room(s, ds), BACKOFF * _room(z, dz))
        if not step > 1e-8:
            break
        s, z, rho = s.plus(step, ds), z.plus(step, dz), rho + step * drho



def _start(layout: Layout, c: float) -> tuple[Cones, Cones, float]:
    """A feasible pair and its rho: lambda uniform, each cone on the central path of a mu the dual value suggests."""
    n, soft = layout.n_pairs, layout.soft
    weights = np.full(n, 1 / n)
    b, half = pull(layout, weights)
    squares = np.einsum("kd,kd->k", b, b)
    value, nu = dual_value(b, half, 1.0)
    mu = max(value, 1e-3) / (n + 2 * len(half) + 1)
    nu = max(nu, mu, 2 * max(0.0, -half.min()))
    while True:  # raise nu until q = |w|^2 + mu / a fits in half the ball
        a = half + nu
        q = squares / (4 * a * a) + mu / a
        if q.sum() <= 0.5:
            break
        nu *= 1.5
    w = b / (2 * a)[:, None]
    values = layout.start + push(layout, w, q)
    spread = max(values.std(), mu * n)
    slack = [] if soft is None else np.full(n, spread)
    rho = values.min() - spread
    above = values - rho + (0 if soft is None else spread)
    difference = (squares / (2 * a) + 2 * mu) / c
    s = Cones(np.r_[above, slack, 1 - q.sum()], np.column_stack([(q / c + c) / 2, (q / c - c) / 2, w]))
    room = [] if soft is None else soft - weights
    z = Cones(np.r_[weights, room, nu], np.column_stack([c * a + difference / 2, c * a - difference / 2, -b]))
    return s, z, rho


class _Newton:
    """The linearised conditions at (s, z): W^-1 ds + W dz = residual divided by the scaled point, both feasible."""

    def __init__(self, layout: Layout, curvature: Curvature, c: float, s: Cones, z: Cones, rho: float):
        self.layout, self.c, self.s, self.z = layout, c, s, z
        n = self.n = layout.n_pairs
        det_s, det_z = _det(s.round), _det(z.round)
        if not (det_s.min() > 1e-60 and det_z.min() > 1e-60):
            raise FloatingPointError("a cone variable has reached the boundary")
        self.size = (det_s / det_z) ** 0.25
        unit_s, unit_z = s.round / np.sqrt(det_s)[:, None], z.round / np.sqrt(det_z)[:, None]
        axis = unit_s + _mirror(unit_z)
        axis /= np.sqrt(2 * (1 + np.einsum("kd,kd->k", unit_s, unit_z)))[:, None]
        self.half = axis.copy()  # W = size (2 half half' - J), W^2 = size^2 (2 axis axis' - J)
        self.half[:, 0] += 1
        self.half /= np.sqrt(2 * self.half[:, 0])[:, None]
        self.point = self.scale(z.round)
        along = (axis[:, 0] - axis[:, 1]) / (2 * c)
        self.centre = axis[:, 2:] / (2 * along)[:, None]
        self.extra = 1 / (np.sqrt(8) * along)
        q = c * (s.round[:, 0] + s.round[:, 1])
        drift = layout.start + push(layout, s.round[:, 2:], q) - rho - s.flat[:n]
        if layout.soft is not None:
            drift += s.flat[n : 2 * n]
        self.drift = np.r_[drift, 1 - q.sum() - s.flat[-1]]  # what s lacks of the linear constraints
        ratio = s.flat / z.flat
        matrix = curvature(self.size**2, self.centre, self.extra)
        matrix.flat[:: n + 2] += fold(ratio, n, 1)
        self.system = Bordered(matrix)

    def scale(self, x: np.ndarray) -> np.ndarray:
        """W x, cone by cone."""
        twice = 2 * np.einsum("kd,kd->k", self.half, x)
        return self.size[:, None] * (twice[:, None] * self.half - _mirror(x))

    def unscale(self, x: np.ndarray) -> np.ndarray:
        """W^-1 x, cone by cone."""
        mirrored = _mirror(self.half)
        twice = 2 * np.einsum("kd,kd->k", mirrored, x)
        return (twice[:, None] * mirrored - _mirror(x)) / self.size[:, None]

    def residual(self, target: float, ds: Cones | None = None, dz: Cones | None = None) -> Cones:
        """target e - s o z, less the second-order term of a predicted step."""
        flat = target - self.s.flat * self.z.flat
        curved = -_product(self.point, self.point)
        curved[:, 0] += target
        if ds is not None:
            flat -= ds.flat * dz.flat
            curved -= _product(self.unscale(ds.round), self.scale(dz.round))
        return Cones(flat, curved)

    def step(self, residual: Cones) -> tuple[Cones, Cones, float]:
        """(ds, dz, drho) for the given right-hand side of the complementarity conditions."""
        layout, n, s, z = self.layout, self.n, self.s, self.z
        pulled = self.unscale(_divide(self.point, residual.round))
        f_w, f_q = pulled[:, 2:], (pulled[:, 0] + pulled[:, 1]) / (2 * self.c)
        g_w, g_q = self._invert(f_w, f_q)
        quotient = residual.flat / z.flat
        right = fold(quotient, n, -1) - self.drift - np.r_[push(layout, g_w, g_q), -g_q.sum()]
        change, drho = self.system(right, 1 - z.flat[:n].sum())
        weights, nu = change[:n], change[n]
        b, half = pull(layout, weights)
        w, q = self._invert(b + f_w, f_q - half - nu)
        ds_round = np.column_stack([q / (2 * self.c), q / (2 * self.c), w])
        dz_round = pulled - self.unscale(self.unscale(ds_round))
        lacking = self.c * (half + nu) - 0.5 * (dz_round[:, 0] + dz_round[:, 1])
        dz_round[:, :2] += lacking[:, None]  # the dual's constraints hold to rounding, not to the system's accuracy
        dz_round[:, 2:] = -b
        dz_flat = expand(change, layout.soft)
        ds_flat = quotient - s.flat / z.flat * dz_flat
        return Cones(ds_flat, ds_round), Cones(dz_flat, dz_round), -drho

    def _invert(self, y_w: np.ndarray, y_q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(dw, dq) of every cone from its right-hand side: the block A' W^-2 A inverted in closed form."""
        weight = self.size**2
        w = weight[:, None] * (y_w + 2 * y_q[:, None] * self.centre)
        return w, 4 * weight * self.extra**2 * y_q + 2 * np.einsum("kd,kd->k", self.centre, w)


def _mirror(x: np.ndarray) -> np.ndarray:
    """J x: the first component kept, the others negated."""
    out = -x
    out[:, 0] = x[:, 0]
    return out


def _det(x: np.ndarray) -> np.ndarray:
    """x' J x in the form that loses least to cancellation."""
    rest = np.sqrt(np.einsum("kd,kd->k", x[:, 1:], x[:, 1:]))
    return (x[:, 0] - rest) * (x[:, 0] + rest)


def _product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Jordan product (x'y, x_0 y_1 + y_0 x_1)."""
    out = x[:, :1] * y + y[:, :1] * x
    out[:, 0] = np.einsum("kd,kd->k", x, y)
    return out


def _divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The z with x o z = y."""
    inner = np.einsum("kd,kd->k", x[:, 1:], y[:, 1:])
    first = (x[:, 0] * y[:, 0] - inner) / _det(x)
    out = (y - first[:, None] * x) / x[:, :1]
    out[:, 0] = first
    return out


def _room(x: Cones, dx: Cones) -> float:
    """The longest step along dx that stays in the cone."""
    longest = room_for(x.flat, dx.flat)
    # (x + t dx)' J (x + t dx) = c + 2 b t + a t^2: the smallest positive root, and the first component's sign
    a = dx.round[:, 0] ** 2 - np.einsum("kd,kd->k", dx.round[:, 1:], dx.round[:, 1:])
    b = x.round[:, 0] * dx.round[:, 0] - np.einsum("kd,kd->k", x.round[:, 1:], dx.round[:, 1:])
    c = _det(x.round)
    under = b * b - a * c
    root = np.sqrt(np.maximum(under, 0))
    meets = (under >= 0) & ((a < 0) | (b < 0))
    denominator = np.where(b < 0, -b + root, -(b + root))
    # b < 0: c / (-b + root) is the nearer root; b >= 0 (then a < 0): -(b + root) / a
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.where(b < 0, c / denominator, denominator / a)
    distance = distance[meets & (distance > 0)]
    return min(longest, float(distance.min())) if len(distance) else longest
