"""A model of data-parallel training: what it predicts, and what a machine with two cores measures.

    python benches/scaling.py [--brasa target/release/brasa] [--turns 5]

PPO on CartPole with networks of three sizes and minibatches of three sizes. A shard of R has 1/R of the environments and of the rows of each
minibatch, so the model is

    seconds(R) = seconds of a run of 1/R of the size + gradient steps x log2(R) x (latency + bytes of the gradient / bandwidth)

The first part is measured with one shard, on both cores at one time, because a machine with all cores busy is slower. Latency and bandwidth are
fitted to all runs with two shards (least squares of relative errors, neither below 0). The first table has the measured efficiency, the
predicted one and their ratio. The second table is for more ranks with a core each: the first part is measured for each number of them, the
exchange is computed for this machine and for two networks.

Use a quiet machine. Each time is the smallest of all turns.
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import tempfile

STEPS = 32
N_EPOCHS = 4
# Hidden units of both layers of actor and critic, and rows of a minibatch.
UNITS, ROWS = [64, 256, 512], [512, 2048, 8192]
# For the last table, with the largest minibatch.
RANKS = [2, 8, 32, 128, 512]
# Latency of a message in seconds and bytes per second.
NETWORKS = {"InfiniBand, 2 us, 12 GB/s": (2e-6, 12e9), "Ethernet, 30 us, 1.2 GB/s": (30e-6, 1.2e9)}


def n_params(units):
    """Weights and biases of actor and critic: 4 inputs, 2 and 1 outputs."""
    return sum(4 * units + units + units * units + units + units * outputs + outputs for outputs in (2, 1))


def seconds(brasa, units, rows, n_shards, rollouts, copies=1):
    """Median seconds of a rollout with four minibatches of `rows`, of as many rollouts: the mean of `copies` runs at one time."""
    n_envs = 4 * rows // STEPS
    settings = {"train.n_envs": n_envs, "train.n_shards": n_shards, "ppo.n_steps": STEPS, "ppo.batch_size": rows, "ppo.n_epochs": N_EPOCHS,
                "network.actor_hidden": [units, units], "network.critic_hidden": [units, units], "train.executor": '"serial"', "train.checkpoint_secs": "1e6"}
    with tempfile.TemporaryDirectory() as folder:
        outs = [pathlib.Path(folder) / str(copy) for copy in range(copies)]
        runs = []
        for out in outs:
            command = [brasa, "train", "benches/configs/cart-pole-ppo.toml", "--quiet", "--steps", str(rollouts * n_envs * STEPS), "--out", str(out)]
            for key, value in settings.items():
                command += ["--set", f"{key}={value}"]
            runs.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, "RAYON_NUM_THREADS": "1"}))
        if any([run.wait() for run in runs]):
            raise SystemExit("a run failed")
        return statistics.mean(median_rollout(out / "metrics.jsonl") for out in outs)


def median_rollout(metrics):
    lines = [json.loads(line) for line in metrics.read_text().splitlines()]
    times = [line["time/time_elapsed"] for line in lines if "time/time_elapsed" in line]
    # The first rollout warms up.
    return statistics.median(end - begin for begin, end in zip(times[:-1], times[1:]))


def fit(cases):
    """Latency and seconds per byte that predict two shards best."""
    best = (math.inf, 0.0, 0.0)
    for latency in (i * 1e-6 for i in range(0, 200, 2)):
        for per_byte in (0.0, *(10 ** (-11 + i / 20) for i in range(50))):
            errors = [(case["half"] + case["gradients"] * (latency + per_byte * case["bytes"])) / case["two"] - 1 for case in cases]
            best = min(best, (sum(error * error for error in errors), latency, per_byte))
    return best[1:]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--brasa", default="target/release/brasa")
    parser.add_argument("--turns", type=int, default=5)
    arguments = parser.parse_args()
    cases = []
    for units in UNITS:
        for rows in ROWS:
            flop = 6 * 4 * rows * n_params(units) * N_EPOCHS
            rollouts = min(max(4, round(1e11 / flop)), 200)
            turns = []
            for _ in range(arguments.turns):
                turns.append([seconds(arguments.brasa, units, n, shards, rollouts, copies) for n, shards, copies in ((rows, 1, 1), (rows, 2, 1), (rows // 2, 1, 2))])
            # Other guests of a virtual machine only add time.
            one, two, half = (min(column) for column in zip(*turns))
            cases.append({"units": units, "rows": rows, "one": one, "two": two, "half": half, "rollouts": rollouts, "gradients": 4 * N_EPOCHS, "bytes": 4 * n_params(units)})
            print(json.dumps(cases[-1]), flush=True)
    latency, per_byte = fit(cases)
    print(f"\nlatency {latency * 1e6:.0f} us, {1 / per_byte / 1e9 if per_byte else math.inf:.2f} GB/s\n")
    print("| hidden units | rows of a minibatch | efficiency of two shards | predicted | ratio |\n|---|---|---|---|---|")
    for case in cases:
        predicted = case["half"] + case["gradients"] * (latency + per_byte * case["bytes"])
        measured, expected = case["one"] / case["two"] / 2, case["one"] / predicted / 2
        print(f"| {case['units']} | {case['rows']:,} | {measured:.2f} | {expected:.2f} | {expected / measured:.2f} |")
    networks = {"this machine": (latency, per_byte), **{name: (delay, 1 / rate) for name, (delay, rate) in NETWORKS.items()}}
    print(f"\n| hidden units | exchange | {' | '.join(f'{n} ranks' for n in RANKS)} |\n|---|---|{'---|' * len(RANKS)}")
    for case in (case for case in cases if case["rows"] == ROWS[-1]):
        units, rows = case["units"], case["rows"]
        parts = [seconds(arguments.brasa, units, rows // n, 1, min(max(4, case["rollouts"] * n // 4), 400), 2) for n in RANKS]
        for name, (delay, rate) in networks.items():
            exchanges = [case["gradients"] * math.log2(n) * (delay + rate * case["bytes"]) for n in RANKS]
            cells = [f"{case['one'] / (part + exchange) / n:.2f}" for n, part, exchange in zip(RANKS, parts, exchanges)]
            print(f"| {units} | {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
