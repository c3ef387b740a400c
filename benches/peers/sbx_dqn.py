"""DQN on CartPole-v1 from start to end in SBX (Stable-Baselines3's interface on JAX), with RL Zoo's hyper-parameters.

    python benches/peers/sbx_dqn.py [--steps 50000] [--seed 0]

Prints one line of JSON. A first, short run compiles; the clock runs over the second, from making the environments to the last update.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import time


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    # One thread; pin the process to a core as well.
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    os.environ["JAX_PLATFORMS"] = "cpu"

    from sbx import DQN
    from stable_baselines3.common.env_util import make_vec_env
    from timed import evaluated

    def run(steps):
        model = DQN(
            "MlpPolicy",
            make_vec_env("CartPole-v1", n_envs=1, seed=arguments.seed),
            learning_rate=2.3e-3,
            batch_size=64,
            buffer_size=100_000,
            learning_starts=1000,
            gamma=0.99,
            target_update_interval=10,
            train_freq=256,
            gradient_steps=128,
            exploration_fraction=0.16,
            exploration_final_eps=0.04,
            policy_kwargs={"net_arch": [256, 256]},
            seed=arguments.seed,
            verbose=0,
        )
        return model.learn(total_timesteps=steps)

    run(2000)
    begin = time.perf_counter()
    model = run(arguments.steps)
    seconds = time.perf_counter() - begin
    packages = ("sbx-rl", "stable_baselines3", "jax", "flax", "gymnasium")
    versions = {name: importlib.metadata.version(name) for name in packages}
    result = {
        "library": "sbx",
        "task": "DQN on CartPole-v1",
        "env_steps": model.num_timesteps,
        "seconds": seconds,
        "env_steps_per_second": model.num_timesteps / seconds,
        "seed": arguments.seed,
        **evaluated(model, make_vec_env("CartPole-v1", n_envs=20, seed=1000 + arguments.seed)),
        "versions": {**versions, "python": platform.python_version()},
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
