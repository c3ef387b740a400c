"""Records statistics of SciPy, rliable and arch for small matrices of scores as golden numbers.

    pip install numpy==2.4.6 scipy==1.17.1 pandas==2.3.3 rliable==1.2.0 arch==7.2.0
    python scripts/record_statistics.py crates/brasa-experiment/tests/data/statistics.json

Means, intervals by Student's t, interquartile means, exact p-values and probabilities of improvement are recorded as numbers.
A bound of a bootstrap is a quantile of random draws, so a window is recorded that another bootstrap must meet. The share of draws
of the other one below the true quantile has the standard deviation sqrt(p (1 - p) / n), that of the recorded one likewise. The
window reaches from the recorded quantile at p - 5 s to that at p + 5 s with s = sqrt(p (1 - p) (1 / n + 1 / n_recorded)), whatever the
distribution is. In the same way an estimated p-value must lie within 5 sqrt(p (1 - p) / n) of the exact one, plus 1 / (n + 1) for the
observed assignment of signs that it counts.
"""

import json
import sys
from importlib.metadata import version

import numpy as np
from arch.bootstrap import IIDBootstrap
from rliable import metrics
from rliable.library import StratifiedBootstrap
from scipy import stats

# Draws of the bootstrap and of the test in `statistics.rs`, and of the bootstrap here.
N_RESAMPLES, N_FLIPS, N_RECORDED = 10_000, 20_000, 20_000
SIGMAS = 5


def draw(rng, n_runs, n_episodes, level, kind):
    episodes, runs = rng.normal(size=(1, n_episodes)), rng.normal(size=(n_runs, 1))
    scores = level + 2 * episodes + runs + rng.normal(size=(n_runs, n_episodes))
    if kind == "heavy":
        scores = level + rng.standard_t(2, size=(n_runs, n_episodes))
    return np.round(4 * scores) / 4 if kind == "ties" else scores


# name, runs and episodes of the first group and runs of the second, distance of their means, kind, share of missing entries.
CASES = [
    ("two runs, twelve episodes", 2, 12, 3, 0.5, "normal", 0.0),
    ("five runs, sixteen episodes", 5, 16, 5, 0.4, "normal", 0.0),
    ("ties", 4, 10, 4, 0.3, "ties", 0.0),
    ("heavy tails", 7, 14, 3, 0.2, "heavy", 0.0),
    ("more pairs than are counted", 5, 20, 4, 0.25, "normal", 0.0),
    ("ten runs, missing entries", 10, 13, 6, 0.5, "normal", 0.2),
]


def mean_interval(run_means):
    half = None
    if len(run_means) > 1:
        low, high = stats.t.interval(0.95, len(run_means) - 1, np.mean(run_means), stats.sem(run_means))
        half = (high - low) / 2
    return {"mean": np.mean(run_means), "half_width": half}


def iqm(scores):
    return stats.trim_mean(scores[np.isfinite(scores)], 0.25)


def middle_mean(scores):
    """The same as `iqm`, in a twentieth of the time."""
    values = np.sort(scores[np.isfinite(scores)])
    cut = len(values) // 4
    return np.array([values[cut : len(values) - cut].mean()])


def windows(draws):
    found = []
    for p in (0.025, 0.975):
        s = np.sqrt(p * (1 - p) * (1 / N_RESAMPLES + 1 / N_RECORDED))
        found.append([np.quantile(draws, max(p - SIGMAS * s, 0)), np.quantile(draws, min(p + SIGMAS * s, 1))])
    return found


def in_episodes(scores, rng):
    if np.isfinite(scores).all():
        bootstrap = StratifiedBootstrap(scores, random_state=np.random.RandomState(7))
        return bootstrap.apply(middle_mean, reps=N_RECORDED).ravel()
    # rliable knows no missing entries.
    strata = [column[np.isfinite(column)] for column in scores.T]
    drawn = [rng.choice(stratum, size=(N_RECORDED, len(stratum))) for stratum in strata]
    return stats.trim_mean(np.concatenate(drawn, axis=1), 0.25, axis=1)


def whole_runs(scores):
    return IIDBootstrap(scores, seed=np.random.RandomState(7)).apply(middle_mean, reps=N_RECORDED).ravel()


def paired(scores, others):
    a, b = np.nanmean(scores, axis=0), np.nanmean(others, axis=0)
    both = np.isfinite(a) & np.isfinite(b)
    test = stats.permutation_test(
        (a[both], b[both]),
        lambda x, y, axis: np.mean(x - y, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
        batch=10_000,
    )
    p, n = float(test.pvalue), int(both.sum())
    allowed = 1e-12 if n <= 16 else SIGMAS * np.sqrt(p * (1 - p) / N_FLIPS) + 1 / (N_FLIPS + 1)
    return {"difference": test.statistic, "p_value": p, "allowed": allowed, "n_pairs": n}


def improvement(scores, others):
    if np.isfinite(scores).all() and np.isfinite(others).all():
        return metrics.probability_of_improvement(scores, others)
    found = []
    for x, y in zip(scores.T, others.T):
        x, y = x[np.isfinite(x)], y[np.isfinite(y)]
        if len(x) and len(y):
            found.append(stats.mannwhitneyu(x, y).statistic / (len(x) * len(y)))
    return np.mean(found)


def plain(value):
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(item) for item in value]
    if isinstance(value, (float, np.floating)):
        return float(value) if np.isfinite(value) else None
    return value


def main(path):
    rng = np.random.default_rng(11)
    cases = {}
    for name, n_runs, n_episodes, n_others, distance, kind, missing in CASES:
        scores = draw(rng, n_runs, n_episodes, distance, kind)
        others = draw(rng, n_others, n_episodes, 0.0, kind)
        for matrix in (scores, others):
            matrix[rng.random(matrix.shape) < missing] = np.nan
        assert np.isclose(middle_mean(scores), iqm(scores), rtol=1e-12)
        cases[name] = {
            "scores": scores,
            "others": others,
            "mean": mean_interval(np.nanmean(scores, axis=1)),
            "iqm": iqm(scores),
            "runs_in_episodes": windows(in_episodes(scores, rng)),
            "whole_runs": windows(whole_runs(scores)),
            "paired": paired(scores, others),
            "probability_of_improvement": improvement(scores, others),
        }
        print(name, cases[name]["paired"], cases[name]["runs_in_episodes"], cases[name]["whole_runs"])
    # Student's t by itself, for few and for many runs.
    sizes = [2, 3, 4, 5, 6, 10, 31, 101]
    means = [{"values": values, **mean_interval(values)} for values in (rng.normal(3, 2, size) for size in sizes)]
    packages = ["numpy", "scipy", "rliable", "arch"]
    document = {"versions": {package: version(package) for package in packages}, "means": means, "cases": cases}
    with open(path, "w") as file:
        json.dump(plain(document), file)
        file.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
