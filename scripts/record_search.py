"""Records densities of Optuna's Parzen estimators and statistics of SciPy's Kruskal-Wallis test as golden numbers.

    pip install optuna==5.0.0 scipy==1.17.1
    python scripts/record_search.py crates/brasa-experiment/tests/data/search.json

A density of an interval with logarithms is recorded as one of the logarithm, as Optuna computes it. Optuna sorts values with an unstable order of equal
ones, which changes the weights of kernels on grids: sorting is stable here. `median_best` is the median over 40 seeds of the best value of 50 trials, of
a function with one smallest value in two intervals and one choice.
"""

import json
import statistics
import sys
from importlib.metadata import version

import numpy as np
import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers._tpe.parzen_estimator import _ParzenEstimator, _ParzenEstimatorParameters
from optuna.samplers._tpe.sampler import default_gamma, default_weights
from scipy import stats

argsort = np.argsort
np.argsort = lambda values, **options: argsort(values, **{**options, "kind": "stable"})

PARAMETERS = _ParzenEstimatorParameters(
    prior_weight=1.0, consider_magic_clip=True, consider_endpoints=False, weights=default_weights, multivariate=False
)
# name, distribution of Optuna, the same one here.
DOMAINS = [
    ("interval", FloatDistribution(-3.0, 5.0), {"low": -3.0, "high": 5.0}),
    ("logarithms", FloatDistribution(1e-5, 1e-1, log=True), {"low": 1e-5, "high": 1e-1, "log": True}),
    ("steps", FloatDistribution(0.1, 0.9, step=0.2), {"low": 0.1, "high": 0.9, "step": 0.2}),
    ("integers", IntDistribution(1, 20), {"low": 1.0, "high": 20.0, "step": 1.0}),
    ("every third integer", IntDistribution(2, 20, step=3), {"low": 2.0, "high": 20.0, "step": 3.0}),
    ("logarithms of integers", IntDistribution(1, 256, log=True), {"low": 1.0, "high": 256.0, "step": 1.0, "log": True}),
    ("choices", CategoricalDistribution(["a", "b", "c", "d"]), {"choices": 4}),
]
# With more than 25 trials, old ones count less.
N_TRIALS = [0, 1, 2, 7, 26, 60]


def draw(rng, distribution):
    if isinstance(distribution, CategoricalDistribution):
        return float(rng.integers(len(distribution.choices)))
    low, high, step = distribution.low, distribution.high, distribution.step
    if distribution.log:
        value = np.exp(rng.uniform(np.log(low), np.log(high)))
    else:
        value = rng.uniform(low, high)
    return float(low + np.round((value - low) / step) * step) if step else float(value)


def ends(domain):
    return [0.0, domain["choices"] - 1.0] if "choices" in domain else [domain["low"], domain["high"]]


def case(rng, name, domains, n_trials):
    """The density of trials with a value for each domain."""
    space = {str(i): distribution for i, (_, distribution, _) in enumerate(domains)}
    trials = [[draw(rng, distribution) for distribution in space.values()] for _ in range(n_trials)]
    at = [list(corner) for corner in zip(*(ends(domain) for *_, domain in domains))]
    at += [[draw(rng, distribution) for distribution in space.values()] for _ in range(6)]
    columns = lambda rows: {key: np.array([row[i] for row in rows]) for i, key in enumerate(space)}
    log_density = _ParzenEstimator(columns(trials), space, PARAMETERS).log_pdf(columns(at))
    domains = [domain for *_, domain in domains]
    return {"name": f"{name}, {n_trials} trials", "domains": domains, "trials": trials, "at": at, "log_density": log_density.tolist()}


def groups(rng, sizes, digits):
    all_groups = [np.round(rng.normal(i * 0.5, 1.0, size), digits) for i, size in enumerate(sizes)]
    n, k = sum(sizes), len(sizes)
    statistic = stats.kruskal(*all_groups).statistic
    return {"groups": [group.tolist() for group in all_groups], "explained": max(0.0, (statistic - k + 1) / (n - k))}


def objective(trial):
    x, y = trial.suggest_float("x", -10.0, 10.0), trial.suggest_float("y", 1e-5, 1e-1, log=True)
    return (x - 3.0) ** 2 + (np.log10(y) + 3.0) ** 2 + (0.0 if trial.suggest_categorical("z", [0, 1, 2]) == 1 else 2.0)


def median_best(make):
    def best(seed):
        study = optuna.create_study(sampler=make(seed=seed))
        study.optimize(objective, n_trials=50)
        return study.best_value

    return statistics.median(best(seed) for seed in range(40))


def main(path):
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    rng = np.random.default_rng(5)
    document = {
        "versions": {package: version(package) for package in ["optuna", "numpy", "scipy"]},
        "densities": [case(rng, domain[0], [domain], n) for domain in DOMAINS for n in N_TRIALS]
        + [case(rng, "all together", DOMAINS, n) for n in N_TRIALS],
        "n_good": [[n, default_gamma(n)] for n in [1, 9, 10, 11, 50, 249, 250, 400]],
        "explained": [groups(rng, sizes, digits) for sizes, digits in [([4, 5], 3), ([6, 6, 7], 1), ([3, 9, 4, 8], 0)]],
        "median_best": {"tpe": median_best(optuna.samplers.TPESampler), "random": median_best(optuna.samplers.RandomSampler)},
    }
    with open(path, "w") as file:
        json.dump(document, file)
        file.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
