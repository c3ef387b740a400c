"""Steps per second of Chargax on its default station, under random actions.

    taskset -c 0 python benches/peers/chargax_steps.py [--env-steps 2000000] [--batches 1 16 64 256 1024]

Prints one line of JSON. A batch is stepped by `vmap` inside a `scan` that is compiled as one program; the program is called
once to compile and warm up, and the clock runs over the next calls. Actions are drawn inside the program, as no step can do
without them; episodes restart by themselves. The best of `--repeats` calls counts for each batch.
`brasa_energy::station::StationConfig::chargax` has the same layout and size of actions.
"""

import argparse
import json
import os
import platform
import time
from importlib.metadata import version


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env-steps", type=int, default=2_000_000, help="steps of all environments per timed call")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 16, 64, 256, 1024])
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()

    # One thread; pin the process to a core as well.
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    os.environ["JAX_PLATFORMS"] = "cpu"

    import jax
    import jax.numpy as jnp
    from chargax import Chargax, ChargingStation

    env = Chargax(station=ChargingStation.init_default_station())
    batches = {}
    for n_envs in arguments.batches:
        # A single environment is slower by more than ten times.
        n_steps = max(1, arguments.env_steps // n_envs // (10 if n_envs == 1 else 1))

        def step(carry, _):
            key, states = carry
            key, key_actions, key_steps = jax.random.split(key, 3)
            actions = jax.vmap(env.sample_action)(jax.random.split(key_actions, n_envs))
            timestep, states = jax.vmap(env.step)(jax.random.split(key_steps, n_envs), states, actions)
            # Everything that a learner gets is summed, or the compiler would leave out what nobody reads.
            results = jax.tree.leaves((timestep.observation, timestep.reward, timestep.terminated, timestep.truncated))
            return (key, states), sum(jnp.sum(leaf.astype(jnp.float32)) for leaf in results)

        @jax.jit
        def run(key):
            key, key_reset = jax.random.split(key)
            _, states = jax.vmap(env.reset)(jax.random.split(key_reset, n_envs))
            _, rewards = jax.lax.scan(step, (key, states), length=n_steps)
            return rewards.sum()

        begin = time.perf_counter()
        jax.block_until_ready(run(jax.random.PRNGKey(0)))
        first = time.perf_counter() - begin
        seconds = []
        for repeat in range(arguments.repeats):
            begin = time.perf_counter()
            jax.block_until_ready(run(jax.random.PRNGKey(repeat + 1)))
            seconds.append(time.perf_counter() - begin)
        batches[n_envs] = {
            "env_steps": n_steps * n_envs,
            "first_call_seconds": round(first, 2),
            "seconds": [round(x, 3) for x in seconds],
            "env_steps_per_second": round(n_steps * n_envs / min(seconds)),
        }
    result = {
        "peer": "chargax",
        "versions": {name: version(name) for name in ("chargax", "jaxnasium", "jax")} | {
            "python": platform.python_version()
        },
        "task": "default station, random actions, one thread",
        "batches": batches,
        "best_env_steps_per_second": max(batch["env_steps_per_second"] for batch in batches.values()),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
