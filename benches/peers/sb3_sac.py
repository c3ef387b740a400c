"""SAC in Stable-Baselines3: env steps per second on Pendulum-v1, or updates per second on a filled buffer.

    python benches/peers/sb3_sac.py --task pendulum [--steps 10000] [--seed 0] [--threads 1]
    python benches/peers/sb3_sac.py --task synthetic [--updates 2000] [--seed 0] [--threads 1]

Prints one line of JSON. On Pendulum both networks have two layers of 64, a batch has 100 rows, and every env step is
followed by one update; the clock runs from the first update to the last, over env steps and updates. The synthetic
task has 17 observations and 6 actions, layers of 256 and batches of 256; the clock runs over `train` alone.
"""

import argparse
import json
import platform
import time


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", choices=["pendulum", "synthetic"], required=True)
    parser.add_argument("--steps", type=int, default=10_000, help="env steps on Pendulum-v1")
    parser.add_argument("--updates", type=int, default=2_000, help="timed updates of the synthetic task")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1, help="threads of PyTorch")
    arguments = parser.parse_args()

    import gymnasium
    import numpy
    import stable_baselines3
    import torch
    from stable_baselines3 import SAC
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.logger import configure
    from stable_baselines3.common.vec_env import DummyVecEnv

    torch.set_num_threads(arguments.threads)

    class Dummy(gymnasium.Env):
        """Random observations and rewards; an episode never ends by itself."""

        observation_space = gymnasium.spaces.Box(-numpy.inf, numpy.inf, (17,), numpy.float32)
        action_space = gymnasium.spaces.Box(-1.0, 1.0, (6,), numpy.float32)

        def reset(self, seed=None, options=None):
            super().reset(seed=seed)
            return self.np_random.standard_normal(17, dtype=numpy.float32), {}

        def step(self, action):
            obs = self.np_random.standard_normal(17, dtype=numpy.float32)
            return obs, float(self.np_random.standard_normal()), False, False, {}

    class Clock(BaseCallback):
        """Starts when learning starts."""

        def _on_step(self):
            if self.num_timesteps == self.model.learning_starts + 1:
                self.begin = time.perf_counter()
            return True

    pendulum = arguments.task == "pendulum"
    if pendulum:
        environment = make_vec_env("Pendulum-v1", n_envs=1, seed=arguments.seed)
        settings = {"batch_size": 100, "policy_kwargs": {"net_arch": [64, 64]}}
    else:
        environment = DummyVecEnv([Dummy])
        settings = {"batch_size": 256, "policy_kwargs": {"net_arch": [256, 256]}, "buffer_size": 10_000}
    model = SAC("MlpPolicy", environment, learning_starts=100, seed=arguments.seed, device="cpu", verbose=0, **settings)
    result = {"library": "stable-baselines3", "task": f"SAC, {arguments.task}"}
    if pendulum:
        clock = Clock()
        model.learn(total_timesteps=arguments.steps, callback=clock)
        seconds = time.perf_counter() - clock.begin
        timed = arguments.steps - model.learning_starts
        evaluation = make_vec_env("Pendulum-v1", n_envs=20, seed=1000 + arguments.seed)
        returns, _ = evaluate_policy(
            model, evaluation, n_eval_episodes=20, deterministic=True, return_episode_rewards=True
        )
        result |= {
            "env_steps": model.num_timesteps,
            "updates": model._n_updates,
            "seconds": seconds,
            "env_steps_per_second": timed / seconds,
            "eval_return": sum(returns) / len(returns),
            "eval_episodes": len(returns),
        }
    else:
        model.learning_starts = 10_001  # fill the buffer, learn nothing
        model.learn(total_timesteps=10_000)
        model.set_logger(configure(None, []))
        model.train(gradient_steps=50, batch_size=model.batch_size)
        begin = time.perf_counter()
        model.train(gradient_steps=arguments.updates, batch_size=model.batch_size)
        seconds = time.perf_counter() - begin
        result |= {
            "updates": arguments.updates,
            "seconds": seconds,
            "updates_per_second": arguments.updates / seconds,
        }
    result |= {
        "batch_size": model.batch_size,
        "seed": arguments.seed,
        "threads": torch.get_num_threads(),
        "device": "cpu",
        "versions": {
            "stable_baselines3": stable_baselines3.__version__,
            "torch": torch.__version__,
            "gymnasium": gymnasium.__version__,
            "numpy": numpy.__version__,
            "python": platform.python_version(),
        },
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
