"""Steps per second of Gymnasium with random actions, as one line of JSON.

    python benches/peers/gymnasium_steps.py --form async [--id CartPole-v1] [--n-envs 8] [--seconds 3]

The forms: `async` is Gymnasium's `AsyncVectorEnv`, a process per environment; `sync` its `SyncVectorEnv`; `bare` a loop of `step` and
`reset` alone in `--processes` processes that do not wait for each other, which no vector environment exceeds. The same work here:
`cargo run --release -p brasa-gym --example steps_per_second -- CartPole-v1 8 8 3`.
"""

import argparse
import json
import multiprocessing
import platform
import time

from timed import steps_per_second


def vector(form, name, n_envs, seconds):
    import gymnasium

    kind = gymnasium.vector.AsyncVectorEnv if form == "async" else gymnasium.vector.SyncVectorEnv
    envs = kind([lambda: gymnasium.make(name)] * n_envs)
    envs.action_space.seed(0)
    actions = [envs.action_space.sample() for _ in range(64)]
    envs.reset(seed=0)

    def step(i):
        envs.step(actions[i])
        return n_envs

    rate = steps_per_second(step, seconds)
    envs.close()
    return rate


def bare(name, n_envs, seconds, seeded, barrier, rates):
    import gymnasium

    envs = [gymnasium.make(name, disable_env_checker=True) for _ in range(n_envs)]
    envs[0].action_space.seed(0)
    actions = [envs[0].action_space.sample() for _ in range(64)]
    for seed, env in enumerate(envs):
        env.reset(seed=seed)
    steps = 0
    barrier.wait()
    begin = time.perf_counter()
    while time.perf_counter() - begin < seconds:
        for at, env in enumerate(envs):
            _, _, terminated, truncated, _ = env.step(actions[(steps + at) % 64])
            if terminated or truncated:
                env.reset(seed=steps if seeded else None)
        steps += 1
    rates.put(steps * n_envs / (time.perf_counter() - begin))


def bare_processes(name, n_envs, n_processes, seconds, seeded):
    barrier, rates = multiprocessing.Barrier(n_processes), multiprocessing.Queue()
    shares = [(i + 1) * n_envs // n_processes - i * n_envs // n_processes for i in range(n_processes)]
    processes = [
        multiprocessing.Process(target=bare, args=(name, share, seconds, seeded, barrier, rates)) for share in shares
    ]
    for process in processes:
        process.start()
    rate = sum(rates.get() for _ in processes)
    for process in processes:
        process.join()
    return rate


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--form", choices=["async", "sync", "bare"], required=True)
    parser.add_argument("--id", default="CartPole-v1")
    parser.add_argument("--n-envs", type=int, default=8)
    parser.add_argument("--processes", type=int, default=2, help="processes of the form `bare`")
    parser.add_argument("--seeded", action="store_true", help="`bare` resets every episode with a seed, as Brasa does")
    parser.add_argument("--seconds", type=float, default=3.0)
    arguments = parser.parse_args()

    import gymnasium
    import numpy

    name, n_envs, seconds = arguments.id, arguments.n_envs, arguments.seconds
    if arguments.form == "bare":
        rate = bare_processes(name, n_envs, arguments.processes, seconds, arguments.seeded)
    else:
        rate = vector(arguments.form, name, n_envs, seconds)
    result = {
        "library": "gymnasium",
        "form": arguments.form,
        "task": name,
        "n_envs": n_envs,
        "env_steps_per_second": round(rate),
        "versions": {
            "gymnasium": gymnasium.__version__,
            "numpy": numpy.__version__,
            "python": platform.python_version(),
        },
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
