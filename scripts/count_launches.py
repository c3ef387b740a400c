"""Counts what training asks of a GPU, on a machine without one: launches, copies and waits per update and per environment step.

    python3 -m venv cuda
    cuda/bin/pip install nvidia-cuda-nvrtc-cu12==12.9.86 nvidia-cuda-nvcc-cu12==12.9.86 nvidia-cuda-runtime-cu12==12.9.79 nvidia-cuda-cccl-cu12==12.9.27
    scripts/gpu.sh build
    cuda/bin/python scripts/count_launches.py --brasa .gpu/brasa --preload .gpu/libllvmstub.so [--capability 8.9] [--only NAME] [--out counts.json]

`scripts/stub_cuda.c` takes the place of NVIDIA's driver: NVRTC compiles every kernel, the stub counts its launches and runs none of
them. Each case runs four times with different numbers of environment steps and updates; three runs give the share of a step and of an
update, the fourth shows whether the model `base + steps x a + updates x b` holds. `ptxas` then assembles every module for the card.
Prints Markdown. Ends with 1 if a run fails, a kernel does not compile, or the fourth run differs by more than 2 %.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WHEELS = Path(sysconfig.get_paths()["purelib"], "nvidia")
CARDS = {"7.0": "Tesla V100-SXM2-16GB", "7.5": "Tesla T4", "8.9": "NVIDIA GeForce RTX 4060", "12.0": "NVIDIA GeForce RTX 5090"}


def on_policy(key, n_envs, n_steps, batch_size, n_epochs, rollouts):
    """Runs as (settings, vectorized steps, gradient steps). More epochs are more updates of the same steps."""
    def run(rollouts, n_epochs):
        steps = rollouts * n_steps
        settings = [f"{key}.n_steps={n_steps}", f"{key}.batch_size={batch_size}", f"{key}.n_epochs={n_epochs}", f"train.n_envs={n_envs}"]
        return settings, steps, rollouts * n_epochs * (n_envs * n_steps // batch_size), steps * n_envs
    return [run(rollouts, n_epochs), run(2 * rollouts, n_epochs), run(2 * rollouts, 2 * n_epochs), run(3 * rollouts, n_epochs)]


def a2c(n_envs, n_steps, rollouts):
    """One update per rollout: longer rollouts are fewer updates of the same steps."""
    def run(rollouts, n_steps):
        steps = rollouts * n_steps
        return [f"a2c.n_steps={n_steps}", f"train.n_envs={n_envs}"], steps, rollouts, steps * n_envs
    return [run(rollouts, n_steps), run(2 * rollouts, n_steps), run(rollouts, 2 * n_steps), run(3 * rollouts, n_steps)]


def off_policy(n_envs, starts, steps, per_step, extra=()):
    def run(steps, per_step):
        settings = [f"train.n_envs={n_envs}", f"off_policy.learning_starts={starts}", f"off_policy.updates_per_step={per_step}", *extra]
        return settings, steps // n_envs, round((steps - starts) * per_step), steps
    return [run(steps, per_step), run(2 * steps, per_step), run(2 * steps, 2 * per_step), run(3 * steps, per_step)]


HOST, DEVICE = 'train.env_device="host"', 'train.env_device="device"'
# What comes in intervals of its own is left out.
QUIET = ["train.eval_interval=1000000000", "train.checkpoint_secs=1e6"]
# Name, experiment, settings of all runs, the four runs. Without policies over graphs: their environments do not allow action 0 at the first step.
CASES = [
    ("PPO, CartPole on the host", "cart-pole-ppo", [HOST], on_policy("ppo", 8, 32, 256, 20, 4)),
    ("PPO, CartPole on the device", "cart-pole-ppo", [DEVICE], on_policy("ppo", 8, 32, 256, 20, 4)),
    ("A2C, CartPole on the host", "cart-pole-a2c", [HOST], a2c(8, 8, 20)),
    ("A2C, CartPole on the device", "cart-pole-a2c", [DEVICE], a2c(8, 8, 20)),
    ("DQN, CartPole on the device", "cart-pole-dqn", [DEVICE], off_policy(1, 256, 1280, 0.5)),
    ("SAC, Pendulum on the device", "pendulum-sac", [DEVICE], off_policy(1, 100, 400, 1.0)),
    ("team of 30 DQN, cellular network on the device", "uara-cly2020", [DEVICE], off_policy(1, 32, 250, 1.0)),
]
TOTALS = ["launches", "h2d", "h2d_bytes", "d2h", "d2h_bytes", "d2d", "d2d_bytes", "memset", "waits", "queued_waits", "event_records",
          "allocations", "graph_launches"]


def toolkit(folder):
    """A folder like that of NVIDIA's toolkit, out of the wheels."""
    include = folder / "include"
    include.mkdir(parents=True)
    for part in ("cuda_runtime", "cuda_nvcc"):
        for path in (WHEELS / part / "include").iterdir():
            if not (include / path.name).exists():
                (include / path.name).symlink_to(path)
    (include / "cccl").symlink_to(WHEELS / "cuda_cccl/include")


def solve(rows, values):
    """Base, share of a step and share of an update; `rows` are (1, steps, updates)."""
    (a, b, c), (x, y, z) = rows, map(Fraction, values)
    def det(m):
        return (m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0])
                + m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]))
    matrix, right = [a, b, c], [x, y, z]
    whole = det(matrix)
    return [Fraction(det([[right[i] if j == k else matrix[i][j] for j in range(3)] for i in range(3)])) / whole for k in range(3)]


class Runner:
    def __init__(self, arguments, folder):
        self.arguments, self.folder = arguments, folder
        self.ptx = folder / "ptx"
        self.ptx.mkdir(exist_ok=True)
        (folder / "ptx-cache").mkdir(exist_ok=True)
        stub = folder / "stub"
        stub.mkdir(exist_ok=True)
        source = Path(__file__).resolve().parent / "stub_cuda.c"
        subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-pthread", "-o", stub / "libcuda.so", source], check=True)
        if not (stub / "libnvidia-ml.so.1").exists():
            (stub / "libnvidia-ml.so.1").symlink_to("libcuda.so")
            (stub / "libnvrtc.so").symlink_to("libcuda.so")
            toolkit(folder / "toolkit")
        self.environment = {
            **os.environ,
            "LD_LIBRARY_PATH": f"{stub}:{WHEELS / 'cuda_nvrtc/lib'}",
            "CUDA_PATH": str(folder / "toolkit"),
            "STUB_CUDA_NVRTC": str(next((WHEELS / "cuda_nvrtc/lib").glob("libnvrtc.so.*"))),
            "STUB_CUDA_CACHE": str(folder / "ptx-cache"),
            "STUB_CUDA_CAPABILITY": arguments.capability,
            "STUB_CUDA_NAME": CARDS.get(arguments.capability, "a card"),
            "STUB_CUDA_PTX": str(self.ptx),
            "STUB_CUDA_READ_ZEROS": "1",
        }
        if arguments.preload:
            self.environment["LD_PRELOAD"] = str(Path(arguments.preload).resolve())

    def run(self, config, settings, env_steps):
        counts = self.folder / f"counts-{os.getpid()}.json"
        counts.unlink(missing_ok=True)
        out = self.folder / f"run-{time.monotonic_ns()}"
        command = [Path(self.arguments.brasa).resolve(), "train", ROOT / "configs" / f"{config}.toml", "--device", "cuda", "--quiet", "--out", out,
                   "--steps", str(env_steps), *(part for setting in settings for part in ("--set", setting))]
        done = subprocess.run(command, cwd=self.folder, env={**self.environment, "STUB_CUDA_COUNTS": str(counts)}, capture_output=True,
                              text=True)
        # No kernel chose an action, so after the training the comparison may stop at a choice that is not allowed.
        stopped = "must be options that the mask allows" in done.stderr
        metrics = out / "metrics.jsonl"
        lines = [json.loads(line) for line in metrics.read_text().splitlines()] if metrics.exists() else []
        trained = any(line.get("time/total_timesteps", 0) >= env_steps for line in lines)
        if (done.returncode and not (stopped and trained)) or not counts.exists():
            raise RuntimeError(f"{config} {settings}: ended with {done.returncode}\n{done.stderr[-4000:]}")
        found = json.loads(counts.read_text())
        # The end of a name is a hash of its variant.
        kernels = {}
        for name, count in found["kernels"].items():
            name = re.sub(r"_[0-9a-f]{8}$", "", name)
            kernels[name] = kernels.get(name, 0) + count
        found["kernels"] = kernels
        found["waits"] = found["stream_waits"] + found["event_waits"] + found["context_waits"]
        return found


def case(runner, config, settings, runs):
    """Shares of each count: (base, per vectorized step, per update), and the relative error of the fourth run."""
    counts = [runner.run(config, [*QUIET, *settings, *run[0]], run[3]) for run in runs]
    rows = [(1, run[1], run[2]) for run in runs]
    result = {"runs": [[*run[1:]] for run in runs], "modules": counts[-1]["modules"], "peak_bytes": counts[-1]["peak_bytes"]}
    result["totals"] = {name: solve(rows[:3], [count[name] for count in counts[:3]]) for name in TOTALS}
    names = sorted({name for count in counts for name in count["kernels"]})
    kernels = {name: solve(rows[:3], [count["kernels"].get(name, 0) for count in counts[:3]]) for name in names}
    result["kernels"] = kernels
    expected = sum(share * value for share, value in zip(result["totals"]["launches"], rows[3]))
    result["error"] = float(abs(expected - counts[3]["launches"]) / counts[3]["launches"])
    return result


def assemble(folder, capability):
    """Numbers of modules that `ptxas` accepts, and its messages for the others."""
    major, minor = capability.split(".")
    arch = f"sm_{major}{minor}" + ("a" if int(major) >= 9 else "")
    texts = {path.read_bytes(): path for path in folder.iterdir()}
    def one(path):
        command = [WHEELS / "cuda_nvcc/bin/ptxas", f"-arch={arch}", path, "-o", "/dev/null"]
        run = subprocess.run(command, capture_output=True, text=True)
        return None if run.returncode == 0 else f"{path.name}: {run.stderr.strip()}"
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        failures = [failure for failure in pool.map(one, texts.values()) if failure]
    return len(texts), failures, sorted({path.name.split("-", 1)[1][:-4] for path in texts.values()})


def table(results):
    """Config, settings, launches per vectorized step and per gradient step of each case, with one epoch."""
    def row(name, config, settings, runs):
        _, step, update = (float(share) for share in results[name]["totals"]["launches"])
        one = [re.sub(r"n_epochs=.*", "n_epochs=1", setting) for setting in [*settings, *runs[0][0]]]
        return {"config": config, "settings": one, "step": round(step, 1), "update": round(update, 1)}
    return {name: row(name, *rest) for name, *rest in CASES if name in results}


def number(value):
    value = float(value)
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}".rstrip("0").rstrip(".") if abs(value) >= 0.05 else f"{value:.2g}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--brasa", required=True, help="the command, built with the feature cuda")
    parser.add_argument("--preload", help="the library of `scripts/gpu.sh build`")
    parser.add_argument("--capability", default="8.9", help="compute capability of the card")
    parser.add_argument("--only", default="", help="only cases whose name contains this")
    parser.add_argument("--top", type=int, default=12, help="kernels listed per case")
    parser.add_argument("--out", help="file for all counts (JSON)")
    parser.add_argument("--table", help="file for the launches of a step and of an update, which a test of plans compares (JSON)")
    parser.add_argument("--keep", help="folder for the files of the runs")
    arguments = parser.parse_args()
    failed, results = False, {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(arguments.keep or temporary).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        runner = Runner(arguments, folder)
        for name, config, settings, runs in CASES:
            if arguments.only not in name:
                continue
            begin = time.monotonic()
            try:
                results[name] = case(runner, config, settings, runs)
                failed |= results[name]["error"] > 0.02
                print(f"{name}: {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
                if arguments.out:
                    Path(arguments.out).write_text(json.dumps(results, indent=1, default=float) + "\n")
            except RuntimeError as error:
                failed = True
                print(f"FAILED {name}: {error}", file=sys.stderr)
        n_modules, refused, names = assemble(runner.ptx, arguments.capability)
    if arguments.table:
        Path(arguments.table).write_text(json.dumps(table(results), indent=1) + "\n")
    failed |= bool(refused) or not results
    print(f"Compute capability {arguments.capability}: {n_modules} modules of {len(names)} kernels compiled by NVRTC, {len(refused)} refused by ptxas\n")
    print("\n".join(refused))
    print("| | launches | uploads | read-backs | copies on the device | waits | allocations |\n|---|---|---|---|---|---|---|")
    columns = ["launches", "h2d", "d2h", "d2d", "waits", "allocations"]
    for name, result in results.items():
        for label, index in (("a vectorized step", 1), ("an update", 2)):
            cells = [number(result["totals"][column][index]) for column in columns]
            print(f"| {name}: {label} | {' | '.join(cells)} |")
    for name, result in results.items():
        print(f"\n{name}: {result['modules']} modules, at most {result['peak_bytes'] / 2**20:.0f} MiB, fourth run off by {100 * result['error']:.2f} %")
        for label, index in (("step", 1), ("update", 2)):
            kernels = sorted(result["kernels"].items(), key=lambda kernel: -kernel[1][index])[: arguments.top]
            print(f"  {label}:", ", ".join(f"{kernel} {number(shares[index])}" for kernel, shares in kernels if shares[index] > 0.005))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
