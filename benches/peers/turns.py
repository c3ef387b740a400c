"""Programs in turns, and their rates relative to the first.

    python benches/peers/turns.py [--turns 5] [--core 1] 'NAME: COMMAND' 'NAME: COMMAND' ...

Each program prints a line of JSON with `env_steps_per_second` or `updates_per_second` as its last line, or is `brasa train`, whose
`--out` must be the word RUN; its rate is the `time/fps` at the end of the run. All run on one core, one after the other. The table has the range
of each rate, and the median and range of the ratios of each turn: what slows the machine for a while slows all programs of a turn.

A file with a program per line can be given instead of programs; the lines of `peers.txt` are those of `docs/benchmarks.md`.
"""

import argparse
import json
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile


def rate(command, core):
    with tempfile.TemporaryDirectory() as folder:
        run = pathlib.Path(folder) / "run"
        words = [str(run) if word == "RUN" else word for word in shlex.split(command)]
        if core is not None:
            words = ["taskset", "-c", str(core), *words]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"`{command}` ended with {done.returncode}:\n{done.stderr[-2000:]}")
        metrics = run / "metrics.jsonl"
        if metrics.exists():
            return json.loads(metrics.read_text().splitlines()[-1])["time/fps"]
        result = json.loads(done.stdout.strip().splitlines()[-1])
        return result.get("env_steps_per_second") or result["updates_per_second"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--core", type=int)
    parser.add_argument("programs", nargs="+")
    arguments = parser.parse_args()
    lines = arguments.programs
    if len(lines) == 1 and pathlib.Path(lines[0]).is_file():
        lines = [line for line in pathlib.Path(lines[0]).read_text().splitlines() if line and line[0] != "#"]
    programs = [tuple(part.strip() for part in line.split(":", 1)) for line in lines]
    rates = {name: [] for name, _ in programs}
    for turn in range(arguments.turns):
        for name, command in programs:
            rates[name].append(rate(command, arguments.core))
            print(f"turn {turn + 1}, {name}: {rates[name][-1]:,.0f}/s", file=sys.stderr)
    first = next(iter(rates.values()))
    print("| | per second | to the first: median | range |\n|---|---|---|---|")
    for name, own in rates.items():
        ratios = [x / y for x, y in zip(own, first)]
        middle = statistics.median(ratios)
        print(f"| {name} | {min(own):,.0f} to {max(own):,.0f} | {middle:.2f} | {min(ratios):.2f} to {max(ratios):.2f} |")


if __name__ == "__main__":
    main()
