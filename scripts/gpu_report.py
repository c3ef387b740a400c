"""What `scripts/gpu.sh run` does on a machine with a GPU: tests, short runs, measurements, one table.

    scripts/gpu.sh run

A row is `ok`, `FAILED` or `SKIPPED`, with numbers and reasons. Ends with 1 if a row failed, or if anything but PyTorch was skipped.
PyTorch is used if `python3` has it (`benches/peers/torch_updates.py`).
"""

import argparse
import glob
import json
import math
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BEGIN = time.monotonic()
HOST, DEVICE = 'train.env_device="host"', 'train.env_device="device"'
# Name, experiment, settings, environment steps. On both devices the environments have the same form, so their numbers are equal.
RUNS = [
    ("PPO, CartPole on the device", "cart-pole-ppo", [DEVICE], 20_480),
    ("PPO, CartPole on the host", "cart-pole-ppo", [HOST], 20_480),
    ("DQN, CartPole", "cart-pole-dqn", [DEVICE, "off_policy.learning_starts=256"], 6_400),
    ("SAC, Pendulum", "pendulum-sac", [DEVICE], 3_000),
    ("team of 30 DQN, cellular network", "uara-cly2020", [DEVICE], 1_500),
    ("PPO over graphs, office", "evacuation-office", [HOST], 12_288),
]
# Largest relative difference of the first learning metrics, per kind of number: updates in 32 bits, in another order of summation.
TOLERANCE = 2e-2


class Report:
    def __init__(self, out, seconds):
        self.out, self.seconds, self.rows = out, seconds, []
        self.log = (out / "log.txt").open("w")

    def left(self):
        return self.seconds - (time.monotonic() - BEGIN)

    def row(self, name, state, detail):
        self.rows.append((name, state, detail))
        print(f"[{time.monotonic() - BEGIN:4.0f} s] {state:8}{name}: {detail}", flush=True)
        self.write()

    def write(self):
        lines = ["# Brasa on a GPU", "", "| what | | |", "|---|---|---|"]
        lines += [f"| {name} | {state} | {detail} |" for name, state, detail in self.rows]
        (self.out / "results.md").write_text("\n".join(lines) + "\n")

    def call(self, name, command, limit, environment):
        """The finished process, or None after a row that says why there is none."""
        limit = min(limit, self.left() - 5)
        if limit < 10:
            self.row(name, "SKIPPED", "no time left")
            return None
        self.log.write(f"\n$ {' '.join(map(str, command))}\n")
        self.log.flush()
        try:
            done = subprocess.run(list(map(str, command)), cwd=ROOT, env=environment, timeout=limit, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, errors="replace")
        except subprocess.TimeoutExpired as late:
            text = late.output or ""
            self.log.write(text if isinstance(text, str) else text.decode(errors="replace"))
            self.row(name, "FAILED", f"not finished after {limit:.0f} s")
            return None
        except OSError as error:
            self.row(name, "FAILED", str(error))
            return None
        self.log.write(done.stdout + f"\n-> {done.returncode}\n")
        self.log.flush()
        return done


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (lines[-1] if lines else "no output").replace("|", "/")[:300]


def toolkit(work):
    """Folder with `include`, folders of NVRTC; a reason if one is missing."""
    packages = [Path(path) for path in {sysconfig.get_paths()["purelib"], *(p for p in sys.path if p.endswith("site-packages"))}]
    candidates = [os.environ.get("CUDA_PATH"), "/usr/local/cuda", *sorted(glob.glob("/usr/local/cuda-*"), reverse=True), "/opt/cuda"]
    for candidate in candidates:
        if candidate and Path(candidate, "include/cuda_runtime.h").exists():
            libraries = [str(path) for part in ("lib64", "lib", "targets/x86_64-linux/lib") for path in [Path(candidate, part)]
                         if list(path.glob("libnvrtc.so*"))]
            if libraries:
                return candidate, libraries, None
    for base in packages:
        nvidia = base / "nvidia"
        found = sorted(nvidia.glob("**/libnvrtc.so*"))
        headers = sorted(nvidia.glob("**/cuda_runtime.h"))
        if found and headers:
            include = work / "toolkit/include"
            include.mkdir(parents=True)
            for folder in [headers[0].parent, *(path.parent.parent for path in nvidia.glob("**/crt/host_defines.h"))]:
                for path in folder.iterdir():
                    if not (include / path.name).exists():
                        (include / path.name).symlink_to(path)
            for path in nvidia.glob("cuda_cccl/include"):
                if not (include / "cccl").exists():
                    (include / "cccl").symlink_to(path)
            return str(work / "toolkit"), [str(found[0].parent)], None
    return None, [], "no libnvrtc.so with cuda_runtime.h: set CUDA_PATH, or install the wheels that scripts/check_cuda.py lists"


def metrics_of(run):
    path = run / "metrics.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def speed(lines):
    """Environment steps per second of the second half, when kernels are compiled."""
    lines = [line for line in lines if "time/total_timesteps" in line and "time/time_elapsed" in line]
    if len(lines) < 2:
        return None
    half, last = lines[len(lines) // 2 - 1 if len(lines) > 2 else 0], lines[-1]
    seconds = last["time/time_elapsed"] - half["time/time_elapsed"]
    return (last["time/total_timesteps"] - half["time/total_timesteps"]) / seconds if seconds > 0 else None


def difference(cpu, cuda):
    """Largest relative difference of the first learning metrics, and its name; None if there are none to compare."""
    def first(lines):
        return next((line for line in lines if any(key.startswith("train/") for key in line)), {})
    a, b = first(cpu), first(cuda)
    names = [key for key in a if key.startswith("train/") and isinstance(a[key], (int, float))]
    if not names:
        return None
    missing = [key for key in names if not isinstance(b.get(key), (int, float))]
    if missing:
        return float("inf"), f"{missing[0]} is missing on CUDA"
    def relative(key):
        gap = abs(a[key] - b[key]) / max(abs(a[key]), 1e-2)
        return gap if math.isfinite(gap) else math.inf
    return max((relative(key), f"{key} {a[key]:.6g} and {b[key]:.6g}") for key in names)


def planned(brasa, config, settings, profile, environment):
    command = [brasa, "plan", ROOT / "configs" / f"{config}.toml", "--json", *(["--device", profile] if profile else [])]
    command += [part for setting in settings for part in ("--set", setting)]
    done = subprocess.run(list(map(str, command)), cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60)
    try:
        return json.loads(done.stdout)
    except ValueError:
        return None


def tests(report, name, program, arguments, environment, limit, must_say=None):
    done = report.call(name, [program, *arguments], limit, environment)
    if done is None:
        return
    summary = re.search(r"test result: .*", done.stdout)
    # A test of a GPU that skips itself has tested nothing.
    skipped = re.search(r"SKIPPED: (?!.*takes minutes).*", done.stdout)
    if done.returncode:
        failed = re.findall(r"^test (\S+) .*FAILED$", done.stdout, re.M) or re.findall(r"^---- (\S+)", done.stdout, re.M)
        report.row(name, "FAILED", f"{', '.join(failed) or last_line(done.stdout)}; exit code {done.returncode}")
    elif skipped:
        report.row(name, "FAILED", f"it skipped itself: {last_line(skipped[0])}")
    else:
        report.row(name, "ok", summary[0].removeprefix("test result: ok. ") if summary else last_line(done.stdout))
        if must_say:
            for line in re.findall(must_say, done.stdout, re.M):
                report.row(f"{name}, {line[0]}", "ok", line[1])


def training(report, brasa, work, environment, profile):
    for name, config, settings, steps in RUNS:
        found, seconds = {}, {}
        for device in ("cpu", "cuda"):
            out = work / f"{config}-{device}-{len(report.rows)}"
            command = [brasa, "train", ROOT / "configs" / f"{config}.toml", "--device", device, "--steps", steps, "--quiet", "--out", out]
            command += [part for setting in settings for part in ("--set", setting)]
            begin = time.monotonic()
            done = report.call(f"{name}, {device}", command, 120, environment)
            if done is None:
                break
            if done.returncode:
                report.row(f"{name}, {device}", "FAILED", f"{last_line(done.stdout)}; exit code {done.returncode}")
                break
            found[device], seconds[device] = metrics_of(out), time.monotonic() - begin
        if len(found) < 2:
            continue
        gap = difference(found["cpu"], found["cuda"])
        if gap is None:
            report.row(f"{name}: numbers", "FAILED", "no learning metrics on the CPU")
        else:
            state = "ok" if gap[0] <= TOLERANCE else "FAILED"
            report.row(f"{name}: numbers", state, f"first learning metrics differ by at most {gap[0]:.1e} ({gap[1]})")
        rates = {device: speed(lines) for device, lines in found.items()}
        if all(rates.values()):
            report.row(f"{name}: speed", "ok", f"{rates['cpu']:,.0f} steps/s on the CPU, {rates['cuda']:,.0f} on CUDA, "
                                               f"{seconds['cuda']:.0f} s with compilation and comparison")
        else:
            report.row(f"{name}: speed", "FAILED", "too few lines in metrics.jsonl")
        used = [line["gpu/memory_gib"] for line in found["cuda"] if "gpu/memory_gib" in line]
        plan = planned(brasa, config, settings, profile, environment)
        total = plan.get("bytes") if plan else None
        report.row(f"{name}: memory", "ok" if used and total else "FAILED",
                   f"planned {total / 2**20:,.0f} MiB, " * bool(total) + (f"GPU at most {max(used) * 1024:,.0f} MiB in use by all programs"
                                                                          if used else "the driver gave no memory in use"))


def torch(report, environment, programs):
    for task in ("ppo", "sac", "sac-large"):
        if report.left() < 30:
            report.row(f"PyTorch, {task}", "SKIPPED", "no time left")
            continue
        name = f"PyTorch, {task}"
        done = report.call(name, ["python3", ROOT / "benches/peers/torch_updates.py", "--device", "cuda", "--task", task], 60, dict(os.environ))
        if done is None:
            continue
        if done.returncode:
            report.row(name, "SKIPPED" if "No module named 'torch'" in done.stdout else "FAILED", last_line(done.stdout))
            continue
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        report.row(name, "ok", ", ".join(f"{line['ms_per_update']:.3f} ms per update ({line['form']})" for line in lines)
                   + f", torch {lines[0]['versions']['torch']}")
    for task, label in (("small", "sac"), ("synthetic", "sac-large")):
        for device in ("cuda", "cpu"):
            name = f"Brasa's SAC update, {label}, {device}"
            if not (programs / "sac").exists():
                report.row(name, "SKIPPED", "the program `sac` was not built")
                continue
            done = report.call(name, [programs / "sac", "--task", task, "--updates", 500], 60, {**environment, "BRASA_BENCH_DEVICE": device})
            if done is None:
                continue
            if done.returncode:
                report.row(name, "FAILED", last_line(done.stdout))
                continue
            line = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
            report.row(name, "ok", f"{1000 / line['updates_per_second']:.3f} ms per update")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=Path, required=True, help="folder with the programs of `scripts/gpu.sh build`")
    parser.add_argument("--out", type=Path, required=True, help="folder for results.md and log.txt")
    arguments = parser.parse_args()
    report = Report(arguments.out.resolve(), float(os.environ.get("BRASA_GPU_SECONDS", "570")))
    programs = arguments.programs.resolve()
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        environment = {**os.environ, "XDG_CACHE_HOME": str(work / "cache")}
        cuda, libraries, missing = toolkit(work)
        if missing:
            report.row("CUDA's compiler", "FAILED", missing)
            return finish(report)
        # A toolkit may only have libnvrtc.so.13; the programs look for these names.
        links = work / "nvrtc"
        links.mkdir()
        for folder in libraries:
            for path in sorted(Path(folder).glob("libnvrtc*.so*")):
                (links / path.name).exists() or (links / path.name).symlink_to(path)
        main_library = next(path for path in sorted(links.glob("libnvrtc.so*")))
        (links / "libnvrtc.so").exists() or (links / "libnvrtc.so").symlink_to(main_library)
        environment["CUDA_PATH"] = cuda
        environment["LD_LIBRARY_PATH"] = ":".join(filter(None, [os.environ.get("LD_LIBRARY_PATH"), str(links)]))
        environment["LD_PRELOAD"] = str(programs / "libllvmstub.so")
        report.row("CUDA's compiler", "ok", f"{cuda}, {main_library.resolve().name}; programs of commit "
                   f"{(programs / 'commit').read_text().strip()[:12]}, profile {(programs / 'profile').read_text().strip()}")
        brasa = programs / "brasa"
        done = report.call("brasa devices", [brasa, "devices"], 120, environment)
        if done is None:
            return finish(report)
        card = re.search(r"^\s+cuda:0\s+(.*)$", done.stdout, re.M)
        state = re.search(r"^\s+cuda\s+(.*)$", done.stdout.partition("Backends")[2], re.M)
        report.row("card", "ok" if card else "FAILED", card[1] if card else "the driver reports no GPU")
        report.row("backend cuda", "ok" if state and state[1] == "works" else "FAILED", (state[1] if state else last_line(done.stdout))[:300])
        if not card or not state or state[1] != "works":
            return finish(report)
        profile = re.search(r"profile (\S+)$", card[1])
        on_gpu = {**environment, "BRASA_TEST_DEVICE": "cuda"}
        for name, program, extra, limit, must_say in [
            ("kernels against the CPU", "device_parity", ["--nocapture"], 180, r"^(?:.*\.\.\. )?(products) on device \d+: (.*)$"),
            ("launches", "launches", ["--nocapture"], 60, r"^(.+): (\[\d+, \d+\] instead of \[\d+, \d+\])$"),
            ("launches", "n_launches", ["--nocapture"], 60, r"^(?:.*\.\.\. )?([\w -]+): (\d+ launches per (?:gradient step|step of environments))$"),
            ("recorded updates", "recordings", ["--nocapture"], 120, r"^(?:.*\.\.\. )?([\w ,-]+): (\d+ launches, \d+ with a recording)$"),
            ("environments as tensors", "suite", ["tensor_env::", "--test-threads=1"], 120, None),
            ("training on the device", "suite", ["device_path::", "--test-threads=1"], 150, None),
        ]:
            if (programs / program).exists():
                tests(report, name, programs / program, extra, on_gpu, limit, must_say)
            else:
                report.row(name, "SKIPPED", f"the program `{program}` was not built")
        training(report, brasa, work, environment, profile[1] if profile and profile[1] != "profile" else None)
        torch(report, environment, programs)
    return finish(report)


def finish(report):
    failed = [row for row in report.rows if row[1] == "FAILED"]
    skipped = [row for row in report.rows if row[1] == "SKIPPED"]
    print(f"\n{len(report.rows)} rows, {len(failed)} FAILED, {len(skipped)} SKIPPED: {report.out / 'results.md'}")
    for name, state, detail in [*failed, *skipped]:
        print(f"{state} {name}: {detail}")
    return 1 if failed or any(not row[0].startswith("PyTorch") for row in skipped) else 0


if __name__ == "__main__":
    sys.exit(main())
