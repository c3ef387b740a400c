"""What `scripts/gpu.sh run` does on a machine with a GPU: tests, short runs, measurements, one table.

    scripts/gpu.sh run

A row is `ok`, `FAILED` or `SKIPPED`, with numbers and reasons. Ends with 1 if a row failed, or if anything but PyTorch was skipped.
PyTorch is used if `python3` has it (`benches/peers`). Tests, and the runs on the processor, share the machine; whatever is timed on the
GPU runs alone after them. `BRASA_GPU_PARTS` names what is wanted, by default `tests,training,recipes,updates`.
"""

import argparse
import glob
import json
import math
import os
import re
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
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
    ("PPO with an LSTM, CartPole without speeds on the device", "cart-pole-no-velocity-ppo", [DEVICE], 10_240),
]
# Recipes as they are, each for some seconds and then interrupted, and settings that are compared with them.
RECIPES = [
    ("t4/cart-pole-ppo", []),
    ("t4/cart-pole-ppo", ["train.capture=true"]),
    ("t4/cart-pole-dqn", []),
    ("t4/cart-pole-dqn", ["train.capture=true"]),
    ("rtx-4060-laptop/iquitos-ppo", []),
    ("rtx-4060-laptop/iquitos-a2c", []),
    ("rtx-4060-laptop/iquitos-sac", []),
    ("rtx-4060-laptop/iquitos-sac", ["train.capture=true"]),
    ("rtx-4060/uara", []),
    ("rtx-5090/evacuation-office", []),
    ("rtx-5090/evacuation-daycare", []),
    ("rtx-5090/evacuation-warehouse", []),
]
# Tests: name, program, arguments, seconds, lines that the table shows.
TESTS = [
    ("kernels against the CPU", "device_parity", ["--nocapture"], r"^(?:.*\.\.\. )?(products) on device \d+: (.*)$"),
    ("kernel launches", "launches", ["--nocapture"], r"^(.+): (\[\d+, \d+\] instead of \[\d+, \d+\])$"),
    ("kernel launches of updates", "n_launches", ["--nocapture"], r"^(?:.*\.\.\. )?([\w -]+): (\d+ launches per (?:gradient step|step of environments))$"),
    ("recorded updates", "recordings", ["--nocapture"], r"^(?:.*\.\.\. )?([\w ,-]+): (\d+ launches, \d+ with a recording)$"),
    ("environments as tensors", "suite", ["tensor_env::", "--test-threads=1"], None),
    ("training on the device", "suite", ["device_path::", "--test-threads=1"], None),
]
# Largest relative difference of the first learning metrics, per kind of number: updates in 32 bits, in another order of summation.
TOLERANCE = 2e-2


class Report:
    def __init__(self, out, seconds):
        self.out, self.seconds, self.rows = out, seconds, []
        self.log = (out / "log.txt").open("w", errors="replace")
        self.lock = threading.RLock()

    def left(self):
        return self.seconds - (time.monotonic() - BEGIN)

    def row(self, name, state, detail):
        with self.lock:
            self.rows.append((name, state, detail))
            print(f"[{time.monotonic() - BEGIN:4.0f} s] {state:8}{name}: {detail}", flush=True)
            self.write()

    def keep(self, command, output, code):
        with self.lock:
            self.log.write(f"\n$ {' '.join(map(str, command))}\n{output}\n-> {code}\n")
            self.log.flush()

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
        try:
            done = subprocess.run(list(map(str, command)), cwd=ROOT, env=environment, timeout=limit, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, errors="replace")
        except subprocess.TimeoutExpired as late:
            text = late.output or ""
            self.keep(command, text if isinstance(text, str) else text.decode(errors="replace"), "timeout")
            self.row(name, "FAILED", f"not finished after {limit:.0f} s")
            return None
        except OSError as error:
            self.row(name, "FAILED", str(error))
            return None
        self.keep(command, done.stdout, done.returncode)
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


def train(brasa, config, settings, device, steps, out):
    command = [brasa, "train", ROOT / "configs" / f"{config}.toml", "--device", device, "--quiet", "--out", out]
    command += ["--steps", steps] if steps else []
    return command + [part for setting in settings for part in ("--set", setting)]


def trained(report, brasa, work, environment, device, index):
    """Metrics of a run, its rate and its seconds; None after a row that says why there are none."""
    name, config, settings, steps = RUNS[index]
    out, begin = work / f"run-{index}-{device}", time.monotonic()
    done = report.call(f"{name}, {device}", train(brasa, config, settings, device, steps, out), 150, environment)
    if done is not None and done.returncode:
        report.row(f"{name}, {device}", "FAILED", f"{last_line(done.stdout)}; exit code {done.returncode}")
        return None
    return None if done is None else (metrics_of(out), time.monotonic() - begin)


def memory(report, brasa, name, config, settings, lines, profile, environment):
    used = [line["gpu/memory_gib"] for line in lines if "gpu/memory_gib" in line]
    plan = planned(brasa, config, settings, profile, environment)
    total = plan.get("bytes") if plan else None
    report.row(f"{name}: memory", "ok" if used and total else "FAILED",
               f"planned {total / 2**20:,.0f} MiB, " * bool(total) + (f"GPU at most {max(used) * 1024:,.0f} MiB in use by all programs"
                                                                      if used else "the driver gave no memory in use"))


def training(report, brasa, work, environment, profile, on_cpu):
    for index, (name, config, settings, _) in enumerate(RUNS):
        cuda, cpu = trained(report, brasa, work, environment, "cuda", index), on_cpu[index].result()
        if cuda is None or cpu is None:
            continue
        (cuda, seconds), (cpu, _) = cuda, cpu
        gap = difference(cpu, cuda)
        if gap is None:
            report.row(f"{name}: numbers", "FAILED", "no learning metrics on the CPU")
        else:
            state = "ok" if gap[0] <= TOLERANCE else "FAILED"
            report.row(f"{name}: numbers", state, f"first learning metrics differ by at most {gap[0]:.1e} ({gap[1]})")
        rate = speed(cuda)
        report.row(f"{name}: speed", "ok" if rate else "FAILED",
                   f"{rate:,.0f} steps/s on CUDA, {seconds:.0f} s with compilation and comparison" if rate else "too few lines in metrics.jsonl")
        memory(report, brasa, name, config, settings, cuda, profile, environment)


def recipes(report, brasa, work, environment, profile):
    seconds = float(os.environ.get("BRASA_GPU_RECIPE_SECONDS", "14"))
    for index, (config, settings) in enumerate(RECIPES):
        name = f"recipe {config}" + "".join(f", {setting}" for setting in settings)
        if report.left() < seconds + 30:
            report.row(name, "SKIPPED", "no time left")
            continue
        out = work / f"recipe-{index}"
        command = list(map(str, train(brasa, config, settings, "cuda", None, out)))
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            try:
                output, _ = process.communicate(timeout=25)
            except subprocess.TimeoutExpired:
                process.kill()
                output = process.communicate()[0] + "\nnot finished 25 s after Ctrl-C"
        report.keep(command, output, process.returncode)
        lines = metrics_of(out)
        rate = speed(lines)
        if not rate:
            report.row(name, "FAILED", f"{last_line(output)}; exit code {process.returncode}, {len(lines)} lines in metrics.jsonl")
            continue
        last = next((line for line in reversed(lines) if "time/total_timesteps" in line), {})
        returns = [line["rollout/ep_rew_mean"] for line in lines if "rollout/ep_rew_mean" in line]
        busy = [line["gpu/busy"] for line in lines if "gpu/busy" in line]
        ended = {0: "finished", 130: "interrupted"}.get(process.returncode)
        detail = [f"{rate:,.0f} steps/s", f"{ended or f'exit code {process.returncode}: {last_line(output)}'} after {int(last['time/total_timesteps']):,} steps"]
        detail += [f"mean return {returns[-1]:.4g}"] if returns else []
        detail += [f"GPU busy {100 * max(busy):.0f} % at most"] if busy else []
        report.row(name, "ok" if ended else "FAILED", ", ".join(detail))
        memory(report, brasa, name, config, settings, lines, profile, environment)


def line_of(text):
    return next((json.loads(line) for line in reversed(text.splitlines()) if line.startswith("{")), None)


def peer(report, name, script, arguments, show):
    done = report.call(name, ["python3", ROOT / "benches/peers" / script, *arguments], 60, dict(os.environ))
    if done is None:
        return
    missing = re.search(r"No module named '(torch\w*)'", done.stdout)
    if done.returncode:
        report.row(name, "SKIPPED" if missing else "FAILED", last_line(done.stdout))
        return
    report.row(name, "ok", show([json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]))


def ours(report, name, programs, program, arguments, environment, device, show):
    if not (programs / program).exists():
        report.row(name, "SKIPPED", f"the program `{program}` was not built")
        return
    done = report.call(name, [programs / program, *arguments], 60, {**environment, "BRASA_BENCH_DEVICE": device})
    if done is None:
        return
    line = None if done.returncode else line_of(done.stdout)
    report.row(name, "ok" if line else "FAILED", show(line) if line else last_line(done.stdout))


def updates(report, environment, programs):
    """The same work in PyTorch and in Brasa on this card."""
    forms = lambda lines: ", ".join(f"{line['ms_per_update']:.3f} ms per update ({line['form']})" for line in lines) + f", torch {lines[0]['versions']['torch']}"
    for task in ("ppo", "sac", "sac-large"):
        peer(report, f"PyTorch, {task}", "torch_updates.py", ["--device", "cuda", "--task", task], forms)
    per_update = lambda line: f"{1000 / line['updates_per_second']:.3f} ms per update"
    for task, label in (("small", "sac"), ("synthetic", "sac-large")):
        for device, extra in (("cuda", []), ("cuda", ["--capture", "true"]), ("cpu", [])):
            ours(report, f"Brasa's SAC update, {label}, {device}{', recorded' * bool(extra)}", programs, "sac",
                 ["--task", task, "--updates", 500, *extra], environment, device, per_update)
    per_pass = lambda line: f"{line['milliseconds_per_pass']:.3f} ms forward and backward"
    for layer in ("v2", "v2-edges"):
        peer(report, f"PyTorch Geometric, graph attention {layer}", "pyg_gat.py", ["--device", "cuda", "--layer", layer, "--passes", 300],
             lambda lines: per_pass(lines[-1]))
        ours(report, f"Brasa, graph attention {layer}", programs, "gat", ["--layer", layer, "--passes", 300], environment, "cuda", per_pass)
    peer(report, "PyTorch, team of 30, one batched network", "uara_torch.py", ["--form", "batched", "--device", "cuda"],
         lambda lines: f"act {lines[-1]['act_ms']:.3f} ms, learn {lines[-1]['learn_ms']:.3f} ms")
    for task in ("act", "learn"):
        ours(report, f"Brasa, team of 30: {task}", programs, "team_dqn", ["--task", task, "--passes", 500], environment, "cuda",
             lambda line: f"{line['milliseconds_per_pass']:.3f} ms")


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
        parts = os.environ.get("BRASA_GPU_PARTS", "tests,training,recipes,updates").split(",")
        on_gpu = {**environment, "BRASA_TEST_DEVICE": "cuda"}
        with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            # The longest first.
            running = [pool.submit(tests, report, name, programs / program, extra, on_gpu, 240, must_say)
                       for name, program, extra, must_say in reversed(TESTS) if "tests" in parts and (programs / program).exists()]
            on_cpu = [pool.submit(trained, report, brasa, work, environment, "cpu", index) for index in range(len(RUNS)) if "training" in parts]
            for done in [*running, *on_cpu]:
                done.result()
        for name, program, _, _ in TESTS:
            if "tests" in parts and not (programs / program).exists():
                report.row(name, "SKIPPED", f"the program `{program}` was not built")
        card_profile = profile[1] if profile and profile[1] != "profile" else None
        if "training" in parts:
            training(report, brasa, work, environment, card_profile, on_cpu)
        if "updates" in parts:
            updates(report, environment, programs)
        if "recipes" in parts:
            recipes(report, brasa, work, environment, card_profile)
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
