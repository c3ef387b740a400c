"""DQN on CartPole-v1 from start to end in Stable-Baselines3, with RL Zoo's hyper-parameters or its own defaults.

    python benches/peers/sb3_dqn.py [--settings zoo] [--steps 50000] [--seed 0] [--threads 1]

Prints one line of JSON with the same fields as `sb3_cartpole.py`. The clock runs from making the environments to the
last update, without imports and without the evaluation.
"""

import argparse
import json
import platform
import time


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1, help="threads of PyTorch")
    parser.add_argument("--settings", choices=["zoo", "default"], default="zoo")
    arguments = parser.parse_args()

    import gymnasium
    import numpy
    import stable_baselines3
    import torch
    from stable_baselines3 import DQN
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.evaluation import evaluate_policy

    torch.set_num_threads(arguments.threads)

    begin = time.perf_counter()
    environments = make_vec_env("CartPole-v1", n_envs=1, seed=arguments.seed)
    zoo = {
        "learning_rate": 2.3e-3,
        "batch_size": 64,
        "buffer_size": 100_000,
        "learning_starts": 1000,
        "gamma": 0.99,
        "target_update_interval": 10,
        "train_freq": 256,
        "gradient_steps": 128,
        "exploration_fraction": 0.16,
        "exploration_final_eps": 0.04,
        "policy_kwargs": {"net_arch": [256, 256]},
    }
    settings = zoo if arguments.settings == "zoo" else {}
    model = DQN("MlpPolicy", environments, seed=arguments.seed, device="cpu", verbose=0, **settings)
    model.learn(total_timesteps=arguments.steps)
    seconds = time.perf_counter() - begin

    evaluation = make_vec_env("CartPole-v1", n_envs=20, seed=1000 + arguments.seed)
    returns, _ = evaluate_policy(
        model, evaluation, n_eval_episodes=20, deterministic=True, return_episode_rewards=True
    )
    result = {
        "library": "stable-baselines3",
        "task": "DQN on CartPole-v1",
        "env_steps": model.num_timesteps,
        "updates": model._n_updates,
        "seconds": seconds,
        "env_steps_per_second": model.num_timesteps / seconds,
        "eval_return": sum(returns) / len(returns),
        "eval_episodes": len(returns),
        "n_envs": environments.num_envs,
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
