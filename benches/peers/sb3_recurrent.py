"""PPO with an LSTM on CartPole-v1 without speeds in sb3-contrib, with RL Zoo's settings for CartPoleNoVel-v1.

    python benches/peers/sb3_recurrent.py [--steps 100000] [--seed 0] [--threads 1]

Prints one line of JSON. The counterpart is `brasa train configs/cart-pole-no-velocity-ppo.toml`: compare `env_steps_per_second` with the last
`time/fps` of its `metrics.jsonl`. The clock runs from making the environments to the last update.
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
    import sb3_contrib
    import torch
    from sb3_contrib import RecurrentPPO
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.vec_env import VecNormalize

    torch.set_num_threads(arguments.threads)
    mask = numpy.array([1, 0, 1, 0], numpy.float32)

    class NoVelocity(gymnasium.ObservationWrapper):
        def observation(self, observation):
            return observation * mask

    begin = time.perf_counter()
    environments = VecNormalize(make_vec_env("CartPole-v1", n_envs=8, seed=arguments.seed, wrapper_class=NoVelocity), norm_reward=False)
    model = RecurrentPPO(
        "MlpLstmPolicy",
        environments,
        n_steps=32,
        batch_size=256,
        n_epochs=20,
        gamma=0.98,
        gae_lambda=0.8,
        ent_coef=0.0,
        learning_rate=lambda remaining: remaining * 1e-3,
        clip_range=lambda remaining: remaining * 0.2,
        policy_kwargs={
            "ortho_init": False,
            "activation_fn": torch.nn.ReLU,
            "lstm_hidden_size": 64,
            "enable_critic_lstm": True,
            "net_arch": {"pi": [64], "vf": [64]},
        },
        seed=arguments.seed,
        device="cpu",
        verbose=0,
    )
    model.learn(total_timesteps=arguments.steps)
    seconds = time.perf_counter() - begin

    evaluation = VecNormalize(make_vec_env("CartPole-v1", n_envs=20, seed=1000 + arguments.seed, wrapper_class=NoVelocity), training=False, norm_reward=False)
    evaluation.obs_rms = environments.obs_rms
    returns, _ = evaluate_policy(model, evaluation, n_eval_episodes=20, deterministic=True, return_episode_rewards=True)
    result = {
        "library": "sb3-contrib",
        "task": "PPO with an LSTM on CartPole-v1 without speeds",
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
            "sb3_contrib": sb3_contrib.__version__,
            "torch": torch.__version__,
            "gymnasium": gymnasium.__version__,
            "numpy": numpy.__version__,
            "python": platform.python_version(),
        },
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
