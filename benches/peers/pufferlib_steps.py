"""Steps per second of PufferLib's CartPole, which is written in C, with random actions, as one line of JSON.

    PYTHONPATH=pufferlib-3.0.0 python benches/peers/pufferlib_steps.py [--n-envs 1024] [--seconds 3]

One call steps all environments in one thread. PufferLib resets an environment within the call of its last step. Its episodes end after 200 steps.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import tempfile
import time


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n-envs", type=int, default=1024)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    import numpy

    # PufferLib puts a link into the working directory when it is imported.
    folder = os.getcwd()
    with tempfile.TemporaryDirectory() as other:
        os.chdir(other)
        from pufferlib.ocean.cartpole.cartpole import Cartpole

        os.chdir(folder)

    n_envs = arguments.n_envs
    # Statistics of episodes, which pass over all environments, are only read at the end.
    envs = Cartpole(num_envs=n_envs, report_interval=1 << 62, seed=arguments.seed)
    generator = numpy.random.default_rng(arguments.seed)
    actions = generator.integers(2, size=(64, n_envs)).astype(numpy.float32)
    envs.reset(arguments.seed)
    calls, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < arguments.seconds:
        envs.step(actions[calls % 64])
        calls += 1
    seconds = time.perf_counter() - begin
    result = {
        "library": "pufferlib",
        "task": "CartPole",
        "n_envs": n_envs,
        "calls_per_second": round(calls / seconds),
        "env_steps_per_second": round(calls * n_envs / seconds),
        "versions": {
            "pufferlib": importlib.metadata.version("pufferlib"),
            "numpy": numpy.__version__,
            "python": platform.python_version(),
        },
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
