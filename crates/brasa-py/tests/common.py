"""What the tests share."""

import subprocess

import brasa
import numpy as np
import pytest

# Small settings; scenarios without an entry have none that make them faster.
SETTINGS = {"uara": {"users": 3, "channels": 2, "episode_steps": 5}}
SCENARIOS = [name for name in brasa.scenarios() if name != "gymnasium"]


def make(scenario, **arguments):
    return brasa.make(scenario, settings=SETTINGS.get(scenario), **arguments)


def make_vec(scenario, num_envs, **arguments):
    return brasa.make_vec(scenario, num_envs, settings=SETTINGS.get(scenario), **arguments)


def legal(space, info, rng):
    """Random actions; where there are masks, legal ones."""
    mask = info.get("action_mask")
    if mask is None:
        return space.sample()
    heads = np.asarray(getattr(space, "nvec", getattr(space, "n", None)))
    rows = mask.reshape(-1, mask.shape[-1])
    per_row = heads.reshape(len(rows), -1)
    chosen = []
    for row, of_heads in zip(rows, per_row):
        first = 0
        for n in of_heads:
            chosen.append(rng.choice(np.flatnonzero(row[first:first + n])))
            first += n
    return np.array(chosen).reshape(heads.shape)


def trained(folder, experiment):
    """The directory of a run that the command trains."""
    try:
        subprocess.run(["brasa", "--version"], check=True, capture_output=True)
    except OSError:
        pytest.skip("SKIPPED: there is no command `brasa` on the PATH")
    config, run = folder / "config.toml", folder / "run"
    config.write_text(experiment)
    done = subprocess.run(["brasa", "train", config, "--out", run, "--quiet"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return config, run
