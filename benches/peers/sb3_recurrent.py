"""PPO with an LSTM on CartPole-v1 without speeds in sb3-contrib, with RL Zoo's settings for CartPoleNoVel-v1.

    python benches/peers/sb3_recurrent.py [--steps 100000] [--seed 0] [--threads 1]

Prints one line of JSON. The counterpart is `brasa train configs/cart-pole-no-velocity-ppo.toml`: compare `env_steps_per_second` with the last
`time/fps` of its `metrics.jsonl`. The clock runs from making the environments to the last update.
"""

import time

from timed import arguments, evaluated, result


def main():
    found = arguments(__doc__, 100_000)
    import gymnasium
    import numpy
    import torch
    from sb3_contrib import RecurrentPPO
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.vec_env import VecNormalize

    mask = numpy.array([1, 0, 1, 0], numpy.float32)

    class NoVelocity(gymnasium.ObservationWrapper):
        def observation(self, observation):
            return observation * mask

    def normalized(n_envs, seed, **more):
        made = make_vec_env("CartPole-v1", n_envs=n_envs, seed=seed, wrapper_class=NoVelocity)
        return VecNormalize(made, norm_reward=False, **more)

    begin = time.perf_counter()
    environments = normalized(8, found.seed)
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
        seed=found.seed,
        device="cpu",
        verbose=0,
    )
    model.learn(total_timesteps=found.steps)
    seconds = time.perf_counter() - begin
    evaluation = normalized(20, 1000 + found.seed, training=False)
    evaluation.obs_rms = environments.obs_rms
    task = "PPO with an LSTM on CartPole-v1 without speeds"
    result(task, model, seconds, found, "sb3_contrib", **evaluated(model, evaluation))


if __name__ == "__main__":
    main()
