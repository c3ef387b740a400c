"""PPO on CartPole-v1 from start to end in Stable-Baselines3, with RL Zoo's hyper-parameters.

    python benches/peers/sb3_cartpole.py [--steps 100000] [--seed 0] [--threads 1]

Prints one line of JSON with the same fields as `cargo run --release --package brasa-benches --example cart_pole`. The
clock runs from making the environments to the last update, without imports and without the evaluation.
"""

import argparse
import json
import platform
import time


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1, help="threads of PyTorch")
    arguments = parser.parse_args()

    import gymnasium
    import numpy
    import stable_baselines3
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.evaluation import evaluate_policy

    torch.set_num_threads(arguments.threads)

    begin = time.perf_counter()
    environments = make_vec_env("CartPole-v1", n_envs=8, seed=arguments.seed)
    model = PPO(
        "MlpPolicy",
        environments,
        n_steps=32,
        batch_size=256,
        n_epochs=20,
        gamma=0.98,
        gae_lambda=0.8,
        ent_coef=0.0,
        learning_rate=lambda remaining: remaining * 1e-3,
        clip_range=lambda remaining: remaining * 0.2,
        seed=arguments.seed,
        device="cpu",
        verbose=0,
    )
    model.learn(total_timesteps=arguments.steps)
    seconds = time.perf_counter() - begin

    evaluation = make_vec_env("CartPole-v1", n_envs=20, seed=1000 + arguments.seed)
    returns, _ = evaluate_policy(
        model, evaluation, n_eval_episodes=20, deterministic=True, return_episode_rewards=True
    )
    result = {
        "library": "stable-baselines3",
        "task": "PPO on CartPole-v1",
        "env_steps": model.num_timesteps,
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
