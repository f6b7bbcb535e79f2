"""Primal-dual interior point on the second-order cone program, w_k and q_k = |w_k|^2 + v_k kept explicit.

The cone of Gaussian k holds s_k = ((q_k / c + c) / 2, (q_k / c - c) / 2, w_k), for s_0^2 - s_1^2 - |w_k|^2 = v_k; its
dual member is z_k = (z_0, z_1, -b_k) with z_0 + z_1 = 2 c a_k, where c (z_0 - z_1) / 2 bounds |b_k|^2 / (4 a_k) from
above. The rest is linear: margin_m + xi_m - rho against lambda_m, xi_m against C - lambda_m, 1 - sum q against nu. Both
sides have interior points whatever the data, so iterates start feasible; what rounding takes away from that is put
back by the next step. Steps are Mehrotra's with the scaling of Nesterov and Todd; the cones' blocks are inverted in
closed form, which leaves the N + 1 variables (lambda, nu) of the dual. Nothing here needs a_k to stay away from zero:
this is the method for programs with v_k > 0.
"""

import numpy as np

from margo.estimate.lme.certificate import dual_value
from margo.estimate.lme.layout import Curvature, Layout, pull, push
from margo.estimate.lme.newton import follow_path
from margo.estimate.lme.progress import Best

ITERATIONS = 100


def solve_conic(layout: Layout, best: Best, tolerance: float) -> str:
    """Offer iterates to ``best`` until its gap is at most ``tolerance`` or, as is then said, no step is left."""
    return follow_path(_Round(layout), layout, best, tolerance, ITERATIONS)


class _Round:
    """U second-order cones for :func:`follow_path`: s and z [U, D + 2], W^-1 ds + W dz = residual / scaled point."""

    def __init__(self, layout: Layout):
        self.layout, self.matrix = layout, Curvature(layout)
        self.c, self.degree = 1 / np.sqrt(len(layout.used)), 2 * len(layout.used)

    def start(self, weights):
        """Feasible for these lambda, each cone on the central path of a mu the dual value suggests."""
        n, c = len(weights), self.c
        b, half = pull(self.layout, weights)
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
        difference = (squares / (2 * a) + 2 * mu) / c
        self.s = np.column_stack([(q / c + c) / 2, (q / c - c) / 2, b / (2 * a)[:, None]])
        self.z = np.column_stack([c * a + difference / 2, c * a - difference / 2, -b])
        return nu, mu * n

    def visit(self, weights, nu):
        w, q = self.s[:, 2:], self.c * (self.s[:, 0] + self.s[:, 1])
        self.product = np.einsum("kd,kd->", self.s, self.z)
        return w, q, np.r_[self.layout.start + push(self.layout, w, q), 1 - q.sum()]

    def halt(self, best, left):
        return ""

    def curvature(self):
        s, z = self.s, self.z
        det_s, det_z = _det(s), _det(z)
        if not (det_s.min() > 1e-60 and det_z.min() > 1e-60):
            raise FloatingPointError("a cone variable has reached the boundary")
        self.size = (det_s / det_z) ** 0.25
        unit_s, unit_z = s / np.sqrt(det_s)[:, None], z / np.sqrt(det_z)[:, None]
        axis = unit_s + _mirror(unit_z)
        axis /= np.sqrt(2 * (1 + np.einsum("kd,kd->k", unit_s, unit_z)))[:, None]
        self.half = axis.copy()  # W = size (2 half half' - J), W^2 = size^2 (2 axis axis' - J)
        self.half[:, 0] += 1
        self.half /= np.sqrt(2 * self.half[:, 0])[:, None]
        self.point = self.scale(z)
        along = (axis[:, 0] - axis[:, 1]) / (2 * self.c)
        self.centre = axis[:, 2:] / (2 * along)[:, None]
        self.extra = 1 / (np.sqrt(8) * along)
        return self.matrix(self.size**2, self.centre, self.extra)

    def scale(self, x: np.ndarray) -> np.ndarray:
        """W x, cone by cone."""
        twice = 2 * np.einsum("kd,kd->k", self.half, x)
        return self.size[:, None] * (twice[:, None] * self.half - _mirror(x))

    def unscale(self, x: np.ndarray) -> np.ndarray:
        """W^-1 x, cone by cone."""
        mirrored = _mirror(self.half)
        twice = 2 * np.einsum("kd,kd->k", mirrored, x)
        return (twice[:, None] * mirrored - _mirror(x)) / self.size[:, None]

    def aim(self, target, step):
        """For the residual target e - s o z, less the second-order term of a predicted step."""
        residual = -_product(self.point, self.point)
        residual[:, 0] += target
        if step is not None:
            residual -= _product(self.unscale(step[0]), self.scale(step[1]))
        self.pulled = self.unscale(_divide(self.point, residual))
        self.f_w, self.f_q = self.pulled[:, 2:], (self.pulled[:, 0] + self.pulled[:, 1]) / (2 * self.c)
        w, q = self._invert(self.f_w, self.f_q)
        return np.r_[push(self.layout, w, q), -q.sum()]

    def follow(self, change):
        """(ds, dz) [U, D + 2] each."""
        b, half = pull(self.layout, change[:-1])
        w, q = self._invert(b + self.f_w, self.f_q - half - change[-1])
        ds = np.column_stack([q / (2 * self.c), q / (2 * self.c), w])
        dz = self.pulled - self.unscale(self.unscale(ds))
        lacking = self.c * (half + change[-1]) - 0.5 * (dz[:, 0] + dz[:, 1])
        dz[:, :2] += lacking[:, None]  # the dual's constraints hold to rounding, not to the system's accuracy
        dz[:, 2:] = -b
        return ds, dz

    def _invert(self, y_w: np.ndarray, y_q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(dw, dq) of every cone from its right-hand side: the block A' W^-2 A inverted in closed form."""
        weight = self.size**2
        w = weight[:, None] * (y_w + 2 * y_q[:, None] * self.centre)
        return w, 4 * weight * self.extra**2 * y_q + 2 * np.einsum("kd,kd->k", self.centre, w)

    def room(self, step, part):
        return part * min(_room(self.s, step[0]), _room(self.z, step[1]))

    def move(self, length, step):
        self.s, self.z = self.s + length * step[0], self.z + length * step[1]


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


def _room(x: np.ndarray, dx: np.ndarray) -> float:
    """The longest step along dx that stays in every cone."""
    # (x + t dx)' J (x + t dx) = c + 2 b t + a t^2: the smallest positive root, and the first component's sign
    a = dx[:, 0] ** 2 - np.einsum("kd,kd->k", dx[:, 1:], dx[:, 1:])
    b = x[:, 0] * dx[:, 0] - np.einsum("kd,kd->k", x[:, 1:], dx[:, 1:])
    c = _det(x)
    under = b * b - a * c
    root = np.sqrt(np.maximum(under, 0))
    # b < 0: c / (-b + root) is the nearer root; b >= 0 (then a < 0): -(b + root) / a
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.where(b < 0, c / (root - b), -(b + root) / a)
    return float(distance[(under >= 0) & ((a < 0) | (b < 0)) & (distance > 0)].min(initial=np.inf))
