"""The classical methods over again: objectives by loops and by a general convex solver, POLA with full projections."""

import cvxpy as cp
import numpy as np


def distance(a, x, y):
    return (x - y) @ a @ (x - y)


def expression(a, x, i, j):
    v = x[i] - x[j]
    return v @ a @ v


def general_pairs(x, similar, dissimilar, regulariser, upper, lower, weight):
    """The smallest objective that cvxpy finds."""
    a = cp.Variable((x.shape[1],) * 2, PSD=True)
    c = np.eye(x.shape[1]) if regulariser == "trace" else sum(np.outer(x[i] - x[j], x[i] - x[j]) for i, j in similar)
    r = cp.sum_squares(a) / 2 if regulariser == "frobenius" else cp.trace(a @ c)
    hinges = [cp.pos(expression(a, x, i, j) - upper) for i, j in similar]
    hinges += [cp.pos(lower - expression(a, x, i, j)) for i, j in dissimilar]
    return cp.Problem(cp.Minimize(r + weight * sum(hinges))).solve()


def general_triplets(x, triplets, regulariser, margin, weight, diagonal=False):
    width = x.shape[1]
    if diagonal:
        w = cp.Variable(width, nonneg=True)
        a, r = cp.diag(w), cp.sum_squares(w) / 2
    else:
        a = cp.Variable((width,) * 2, PSD=True)
        c = np.eye(width) if regulariser == "trace" else sum(np.outer(x[i] - x[j], x[i] - x[j]) for i, j, _ in triplets)
        r = cp.sum_squares(a) / 2 if regulariser == "frobenius" else cp.trace(a @ c)
    hinges = [cp.pos(expression(a, x, i, j) - expression(a, x, i, k) + margin) for i, j, k in triplets]
    return cp.Problem(cp.Minimize(r + weight * sum(hinges))).solve()


def kwok_tsang(x, similar, dissimilar, c_s, c_d, nu):
    a, gamma, eye = cp.Variable((x.shape[1],) * 2, PSD=True), cp.Variable(nonneg=True), np.eye(x.shape[1])
    near = sum(cp.pos(expression(a, x, i, j) - distance(eye, x[i], x[j])) for i, j in similar)
    far = sum(cp.pos(distance(eye, x[i], x[j]) + gamma - expression(a, x, i, j)) for i, j in dissimilar)
    value = cp.sum_squares(a) / 2 + c_s / len(similar) * near + c_d * (far / len(dissimilar) - nu * gamma)
    return cp.Problem(cp.Minimize(value)).solve()


def itml(x, similar, dissimilar, upper, lower, gamma):
    """With the slack ξ as variables of their own."""
    width = x.shape[1]
    a = cp.Variable((width,) * 2, PSD=True)
    xi, zeta = cp.Variable(len(similar), pos=True), cp.Variable(len(dissimilar), pos=True)
    value = cp.trace(a) - cp.log_det(a) - width
    value += gamma * sum(cp.sum(s / b - cp.log(s / b) - 1) for s, b in ((xi, upper), (zeta, lower)))
    bounds = [expression(a, x, i, j) <= xi[k] for k, (i, j) in enumerate(similar)]
    bounds += [expression(a, x, i, j) >= zeta[k] for k, (i, j) in enumerate(dissimilar)]
    return cp.Problem(cp.Minimize(value), bounds).solve()


def mmc(x, similar, dissimilar):
    a = cp.Variable((x.shape[1],) * 2, PSD=True)
    near = sum(expression(a, x, i, j) for i, j in similar)
    far = sum(cp.sqrt(expression(a, x, i, j)) for i, j in dissimilar)
    return cp.Problem(cp.Minimize(near), [far >= 1]).solve()


def mcml(x, labels):
    a = cp.Variable((x.shape[1],) * 2, PSD=True)
    total = 0
    for i in range(len(x)):
        others = [j for j in range(len(x)) if j != i]
        mates = [j for j in others if labels[j] == labels[i]]
        if mates:
            partition = cp.log_sum_exp(cp.hstack([-expression(a, x, i, k) for k in others]))
            total += sum(expression(a, x, i, j) for j in mates) / len(mates) + partition - np.log(len(mates))
    return cp.Problem(cp.Minimize(total)).solve()


def mcml_value(a, x, labels):
    """Σ_i KL(p⁰ ‖ p), term by term."""
    total = 0.0
    for i in range(len(x)):
        others = [j for j in range(len(x)) if j != i]
        mates = [j for j in others if labels[j] == labels[i]]
        mass = sum(np.exp(-distance(a, x[i], x[k])) for k in others)
        for j in mates:
            p0, p = 1 / len(mates), np.exp(-distance(a, x[i], x[j])) / mass
            total += p0 * np.log(p0 / p)
    return total


def lmnn_value(a, x, labels, targets, weight=1.0, margin=1.0):
    total = sum(distance(a, x[i], x[j]) for i, j in targets)
    for i, j in targets:
        for l in range(len(x)):
            if labels[l] != labels[i]:
                total += weight * max(0.0, distance(a, x[i], x[j]) - distance(a, x[i], x[l]) + margin)
    return total


def pola(steps, width):
    """Steps are (v, sign); both projections of the publication are solved by cvxpy, the second by all eigenvalues."""
    a, b = np.zeros((width, width)), 0.0
    for v, sign in steps:
        if sign * (v @ a @ v - b) + 1 > 0:
            m, t = cp.Variable((width, width), symmetric=True), cp.Variable()
            near = cp.Minimize(cp.sum_squares(m - a) + cp.square(t - b))
            cp.Problem(near, [sign * (t - v @ m @ v) >= 1]).solve()
            values, vectors = np.linalg.eigh(m.value)
            a, b = (vectors * np.maximum(values, 0)) @ vectors.T, max(float(t.value), 1.0)
    return a, b
