"""The length scales of a Gaussian process, by maximum marginal likelihood with priors.

Rasmussen and Williams, 2006, http://gaussianprocess.org/gpml, chapter 5; the variance of the process is
solved for, the other parameters follow the gradient by Rprop (Riedmiller and Braun, 1993,
https://doi.org/10.1109/ICNN.1993.298623), which needs no line search and no scale.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

# Priors, of logarithms, chosen on synthetic spaces: a knob may matter much, little, or not at all.
WIDTH_MEAN, WIDTH_SPREAD = 0.0, 1.5
NOISE_MEAN, NOISE_SPREAD = math.log(1e-2), 1.0  # share of the variance that no knob explains
SCALE_COUNT = 2.0  # prior observations of variance 1
STEPS = 20
JITTER = 1e-6  # on the diagonal, for numerical stability in float32
FIRST_STEP, LARGEST_STEP = 0.4, 1.0
FASTER, SLOWER = 1.3, 0.5


@dataclass(frozen=True, eq=False)
class Widths:
    """The fitted parameters of a Gaussian process: a weight for each column, and the noise variance.

    A weight multiplies the squared distance in its column; it is 1 / (2 length scale**2). The noise is
    relative to the variance of the process.
    """

    weights: Array  # per column, of the squared difference
    noise: float

    @classmethod
    def of(cls, parameters: Array) -> "Widths":
        """Returns the parameters from their natural logarithms: the columns' weights, then the noise.

        Adds JITTER (1e-6) to the noise.
        """
        return cls(np.exp(parameters[:-1]), math.exp(parameters[-1]) + JITTER)


def correlation(distance: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """Returns the Matern 5/2 correlation of weighted squared distances, elementwise.

    Equation 4.17 of Rasmussen and Williams, with the length scales in the weights.
    """
    r = np.sqrt(10 * distance)  # of a dtype that follows the distance's
    result: npt.NDArray[np.floating] = (1 + r + r * r / 3) * np.exp(-r)
    return result


def fit(squares: Array, values: Array) -> Widths:
    """Fits weights and noise to observations, by maximum posterior likelihood in a few gradient steps.

    ``squares`` are the squared distances of all pairs of observations by column, (columns, observations,
    observations); ``values`` are the standardized values of the observations.
    """
    columns = len(squares)
    prior = np.array([*[WIDTH_MEAN] * columns, NOISE_MEAN])
    spread = np.array([*[WIDTH_SPREAD] * columns, NOISE_SPREAD])
    now, step, before = prior.copy(), np.full(columns + 1, FIRST_STEP), np.zeros(columns + 1)
    best, least = now, math.inf
    for _ in range(STEPS):
        loss, slope = _loss(squares, values, now)
        loss += 0.5 * float((((now - prior) / spread) ** 2).sum())
        slope += (now - prior) / spread**2
        if loss < least:
            best, least = now, loss
        turn = slope * before
        step = np.where(
            turn > 0, np.minimum(step * FASTER, LARGEST_STEP), np.where(turn < 0, step * SLOWER, step)
        )
        before = np.where(turn < 0, 0.0, slope)
        now = now - np.sign(before) * step
    return Widths.of(best)


def _loss(squares: Array, values: Array, parameters: Array) -> tuple[float, Array]:
    """Returns the negative logarithm of the marginal likelihood and its gradient."""
    columns, count, _ = squares.shape
    widths = Widths.of(parameters)
    flat = squares.reshape(columns, count * count)
    r = np.sqrt(10 * (widths.weights @ flat)).reshape(count, count)
    decay = np.exp(-r)
    covariance = (1 + r + r * r / 3) * decay + widths.noise * np.eye(count)
    inverse = np.linalg.inv(covariance)
    weighted = inverse @ values
    variance = (values @ weighted + SCALE_COUNT) / (count + SCALE_COUNT)
    loss = 0.5 * (count + SCALE_COUNT) * math.log(variance) + 0.5 * float(np.linalg.slogdet(covariance)[1])
    outer = 0.5 * (inverse - np.outer(weighted, weighted) / variance)
    by_width = widths.weights * (flat @ (outer * (-5 / 3) * (1 + r) * decay).ravel())
    by_noise = (widths.noise - JITTER) * np.trace(outer)
    return loss, np.append(by_width, by_noise)
