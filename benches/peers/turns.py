"""Programs in turns, and their rates relative to the first.

    python benches/peers/turns.py [--turns 5] [--core 1] [--only WORD] benches/peers/peers.txt

The file has a program per line, `NAME: COMMAND`; a line that starts with `==` begins another table, `--only` selects those with this word.

Each program prints a line of JSON with `env_steps_per_second` or `updates_per_second` as its last line, or is `brasa train`, whose
`--out` must be the word RUN; its rate is the `time/fps` at the end of the run. The word SEED is the number of the turn, from 0 on. Programs run one
after the other; with `--core`, on this core and with one thread in the pools of rayon and OpenBLAS. The table has the range of each rate, and the
median and range of the ratios of each turn: what slows the machine for a while slows all programs of a turn. The return is that of the policy after
training, mean and range over turns, if a program has it (`eval_return`, or the result of `brasa train`). The last column is the most memory that a
program held at any time (its resident set).

A turn in which other programs, or other guests of the same processor, take more than 5 % of a core is repeated, at most three times as often as
there are turns; then the program ends without a table.
"""

import argparse
import json
import os
import pathlib
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

# Part of a core that other programs may take.
OTHERS = 0.05
# Without RAYON_NUM_THREADS, programs with candle count the cores before every matrix multiplication.
ONE_THREAD = {"RAYON_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


class Busy(Exception):
    """Other programs used the machine."""


def processor_seconds():
    """Processor time of the whole machine, and of the children of this process that have ended."""
    fields = pathlib.Path("/proc/stat").read_text().splitlines()[0].split()[1:9]
    user, nice, system, _, _, irq, soft_irq, steal = (int(field) for field in fields)
    all_seconds = (user + nice + system + irq + soft_irq + steal) / os.sysconf("SC_CLK_TCK")
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    return all_seconds, own.ru_utime + own.ru_stime


def measured(command, core, turn):
    """The rate of a program, the return of its policy or None, and the most memory that it held, in MiB."""
    with tempfile.TemporaryDirectory() as folder:
        run = pathlib.Path(folder) / "run"
        words = [{"RUN": str(run), "SEED": str(turn)}.get(word, word) for word in shlex.split(command)]
        environment = dict(os.environ)
        if core is not None:
            words = ["taskset", "-c", str(core), *words]
            environment |= ONE_THREAD
        begin, (all_before, own_before) = time.monotonic(), processor_seconds()
        with open(f"{folder}/out", "w+") as out, open(f"{folder}/err", "w+") as err:
            _, status, used = os.wait4(subprocess.Popen(words, stdout=out, stderr=err, env=environment).pid, 0)
            out.seek(0), err.seek(0)
            printed, complaint = out.read(), err.read()
        elapsed, (all_after, own_after) = time.monotonic() - begin, processor_seconds()
        if (code := os.waitstatus_to_exitcode(status)) != 0:
            sys.exit(f"`{command}` ended with {code}:\n{complaint[-2000:]}")
        others = (all_after - all_before - own_after + own_before) / elapsed
        # A hundredth of a second is the unit of the counts.
        if others > OTHERS + 0.1 / elapsed:
            raise Busy(f"other programs took {others:.0%} of a core")
        metrics = run / "metrics.jsonl"
        if metrics.exists():
            fields = [json.loads(line) for line in metrics.read_text().splitlines()]
            rate = [line["time/fps"] for line in fields if "time/fps" in line][-1]
            reached = json.loads((run / "result.json").read_text())["controllers"]["trained"]["return"]
        else:
            result = json.loads(printed.strip().splitlines()[-1])
            rate = result.get("env_steps_per_second") or result["updates_per_second"]
            reached = result.get("eval_return")
        return rate, reached, used.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--core", type=int)
    parser.add_argument("--only", default="")
    parser.add_argument("file", type=pathlib.Path)
    arguments = parser.parse_args()
    tables = [("", [])]
    for line in arguments.file.read_text().splitlines():
        if line.startswith("=="):
            tables.append((line[2:].strip(), []))
        elif line and line[0] != "#":
            tables[-1][1].append([part.strip() for part in line.split(":", 1)])
    for task, programs in tables:
        if programs and arguments.only in task:
            table(task, programs, arguments)


def table(task, programs, arguments):
    rates = {name: [] for name, _ in programs}
    turn, n_rejected = 0, 0
    while turn < arguments.turns:
        try:
            of_turn = {}
            for name, command in programs:
                of_turn[name] = measured(command, arguments.core, turn)
                print(f"{task}, turn {turn + 1}, {name}: {of_turn[name][0]:,.0f}/s", file=sys.stderr)
        except Busy as busy:
            n_rejected += 1
            print(f"{task}, turn {turn + 1} is rejected: {busy}", file=sys.stderr)
            if n_rejected > 2 * arguments.turns:
                sys.exit("the machine is not quiet")
            continue
        turn += 1
        for name, value in of_turn.items():
            rates[name].append(value)
    first = next(iter(rates.values()))
    print(f"{task}\n\n| | per second | to the first: median | range | return | MiB |\n|---|---|---|---|---|---|")
    for name, turns in rates.items():
        (own, reached, memory), ratios = zip(*turns), [x[0] / y[0] for x, y in zip(turns, first)]
        middle = statistics.median(ratios)
        returns = "" if None in reached else f"{statistics.mean(reached):.1f} ({min(reached):.1f} to {max(reached):.1f})"
        print(
            f"| {name} | {min(own):,.0f} to {max(own):,.0f} | {middle:.2f} | {min(ratios):.2f} to {max(ratios):.2f} "
            f"| {returns} | {max(memory):,.0f} |"
        )
    print(flush=True)


if __name__ == "__main__":
    main()
