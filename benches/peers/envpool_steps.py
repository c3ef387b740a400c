"""Steps per second of EnvPool's CartPole-v1 with random actions and one thread, as one line of JSON.

    python benches/peers/envpool_steps.py [--n-envs 1024] [--seconds 3]

All environments step at each call. EnvPool resets an environment at the call after its last step, and counts that call as a step; it is none here.
"""

import argparse
import importlib.metadata
import json
import platform
import time


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n-envs", type=int, default=1024)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    import envpool
    import numpy

    n_envs = arguments.n_envs
    envs = envpool.make("CartPole-v1", env_type="gymnasium", num_envs=n_envs, num_threads=1, seed=arguments.seed)
    generator = numpy.random.default_rng(arguments.seed)
    actions = generator.integers(2, size=(64, n_envs), dtype=numpy.int32)
    envs.reset()
    calls, resets, begin = 0, 0, time.perf_counter()
    while time.perf_counter() - begin < arguments.seconds:
        _, _, terminated, truncated, _ = envs.step(actions[calls % 64])
        resets += numpy.count_nonzero(terminated | truncated)
        calls += 1
    seconds = time.perf_counter() - begin
    result = {
        "library": "envpool",
        "task": "CartPole-v1",
        "n_envs": n_envs,
        "calls_per_second": round(calls / seconds),
        "env_steps_per_second": round((calls * n_envs - resets) / seconds),
        "episodes": int(resets),
        "versions": {
            "envpool": importlib.metadata.version("envpool"),
            "numpy": numpy.__version__,
            "python": platform.python_version(),
        },
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
