"""Ways to learn a number from a few features: what the tuner's estimator can be made of.

All learn from a table of features and give a mean and a standard deviation. The tuner uses the
Gaussian Process; the others are those the seed compares it with (Slack-ScaleGate, §6, Table 1).
scikit-learn is imported here and nowhere else, and only when something is fitted.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SEARCH_POINTS = 100  # scales are sought on so many points at most; all are learned from
N_GUESSES, N_STEPS = 30, 30
LENGTHS, LEVELS, NOISES = (0.2, 50.0), (0.2, 5.0), (1e-3, 1.0)  # in standard deviations
BEYOND = 10.0  # bounds lie so far out that no guess comes near


class Regressor(Protocol):
    """Anything that learns numbers from features."""

    def fit(self, x: Floats, y: Floats) -> None:
        """Learn from a row of features per number."""

    def predict(self, x: Floats) -> tuple[Floats, Floats]:
        """The mean and the standard deviation for each row of features."""


class GaussianProcess:
    """A Gaussian Process: close to the points it knows nearly sure, far from them as good as blind.

    How fast the numbers change along each feature is sought by likelihood: seeded guesses, then
    seeded steps from the best. The same seed and points give the same process.

    >>> process = GaussianProcess(seed=1)
    >>> process.fit(np.arange(10.0)[:, None], np.arange(10.0) ** 2)
    >>> mean, std = process.predict(np.array([[4.5], [40.0]]))
    >>> bool(abs(mean[0] - 20.25) < 1), bool(std[0] < std[1])
    (True, True)
    """

    def __init__(self, seed: int = 0) -> None:
        self._seed = seed

    def fit(self, x: Floats, y: Floats) -> None:
        """Seek the scales, then learn from every point."""
        from sklearn.gaussian_process import GaussianProcessRegressor

        self._x, self._y = _Scale(x), _Scale(y)
        x, y = self._x.apply(x), self._y.apply(y)
        some = np.unique(np.linspace(0, len(y) - 1, min(len(y), SEARCH_POINTS)).astype(int))
        sought = GaussianProcessRegressor(_kernel(x.shape[1]), optimizer=self._search)
        kernel = sought.fit(x[some], y[some]).kernel_
        self._process = GaussianProcessRegressor(kernel, optimizer=None).fit(x, y)

    def predict(self, x: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of an observation there."""
        mean, std = self._process.predict(self._x.apply(x), return_std=True)
        return self._y.undo(mean), std * self._y.std

    def _search(
        self, loss: Callable[..., float], theta: Floats, bounds: Floats
    ) -> tuple[Floats, float]:
        """The likeliest of a few guesses, improved in small steps. `theta` are logarithms."""
        rng = np.random.default_rng(self._seed)
        low, high = bounds[:, 0] + np.log(BEYOND), bounds[:, 1] - np.log(BEYOND)
        guesses = [theta, *rng.uniform(low, high, (N_GUESSES, theta.size))]
        least, best = min(
            ((loss(guess, eval_gradient=False), n) for n, guess in enumerate(guesses))
        )
        theta = guesses[best]
        for n in range(N_STEPS):
            width = (high - low) * 0.3 * (1 - n / N_STEPS)
            guess = np.clip(theta + rng.normal(0, width), low, high)
            if (now := loss(guess, eval_gradient=False)) < least:
                theta, least = guess, now
        return theta, least


class Linear:
    """A straight line through the features."""

    def fit(self, x: Floats, y: Floats) -> None:
        """By least squares."""
        from sklearn.linear_model import LinearRegression

        self._model = LinearRegression().fit(x, y)
        self._std = _spread(y - self._model.predict(x))

    def predict(self, x: Floats) -> tuple[Floats, Floats]:
        """The line, and how far points lay from it."""
        return self._model.predict(x), np.full(len(x), self._std)


class Isotonic:
    """Steps that only rise, or only fall, with the first feature; blind to the others."""

    def fit(self, x: Floats, y: Floats) -> None:
        """By least squares, in the direction the points suggest."""
        from sklearn.isotonic import IsotonicRegression

        rising = bool(np.dot(x[:, 0] - x[:, 0].mean(), y - y.mean()) >= 0)
        self._model = IsotonicRegression(increasing=rising, out_of_bounds="clip")
        self._std = _spread(y - self._model.fit(x[:, 0], y).predict(x[:, 0]))

    def predict(self, x: Floats) -> tuple[Floats, Floats]:
        """The step, and how far points lay from it."""
        return self._model.predict(x[:, 0]), np.full(len(x), self._std)


class SupportVectors:
    """A support vector machine with radial functions, as scikit-learn sets it."""

    def fit(self, x: Floats, y: Floats) -> None:
        """On standardised features and numbers."""
        from sklearn.svm import SVR

        self._x, self._y = _Scale(x), _Scale(y)
        self._model = SVR().fit(self._x.apply(x), self._y.apply(y))
        self._std = _spread(y - self._y.undo(self._model.predict(self._x.apply(x))))

    def predict(self, x: Floats) -> tuple[Floats, Floats]:
        """Its answer, and how far points lay from it."""
        mean = self._y.undo(self._model.predict(self._x.apply(x)))
        return mean, np.full(len(x), self._std)


class _Scale:
    """To mean 0 and deviation 1, and back; what never changes stays at 0."""

    def __init__(self, values: Floats) -> None:
        self.mean = values.mean(axis=0)
        std = values.std(axis=0)
        self.std = np.where(std > 1e-9 * (1 + np.abs(self.mean)), std, 1.0)

    def apply(self, values: Floats) -> Floats:
        return np.asarray((values - self.mean) / self.std, np.float64)

    def undo(self, values: Floats) -> Floats:
        return np.asarray(values * self.std + self.mean, np.float64)


def _kernel(n_features: int) -> Any:
    """How alike two points are: a level, a length per feature, and noise."""
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    def wide(low: float, high: float) -> tuple[float, float]:
        return low / BEYOND, high * BEYOND

    matern = Matern(np.full(n_features, 2.0), wide(*LENGTHS), nu=1.5)
    return ConstantKernel(1.0, wide(*LEVELS)) * matern + WhiteKernel(0.05, wide(*NOISES))


def _spread(residuals: Floats) -> float:
    return float(np.sqrt(np.mean(residuals**2)))
