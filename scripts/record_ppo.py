"""Records one PPO update of Stable-Baselines3, and GAE and losses of PyTorch, as golden numbers.

    pip install torch==2.9.1 stable-baselines3==2.9.2 gymnasium==1.2.3
    python scripts/record_ppo.py crates/brasa-ppo/tests/data/sb3_update.json

The rollout is made up (random observations, rewards and ends), so that every branch is met; the update itself is
`stable_baselines3.PPO.train`, run on one minibatch that holds the whole rollout, which makes its order irrelevant.
"""

import json
import sys

import gymnasium
import numpy as np
import stable_baselines3
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.logger import configure

ROWS, STEPS, WIDTH = 2, 8, 5


class Nothing(gymnasium.Env):
    """Only its spaces count."""

    def __init__(self, action_space):
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (WIDTH,), np.float32)
        self.action_space = action_space

    def reset(self, seed=None, options=None):
        return np.zeros(WIDTH, np.float32), {}

    def step(self, action):
        return np.zeros(WIDTH, np.float32), 0.0, False, False, {}


def numbers(array):
    array = np.asarray(array.detach().numpy() if isinstance(array, torch.Tensor) else array)
    return [float(x) for x in array.astype(np.float64).reshape(-1)]


def weights(policy):
    names = {"mlp_extractor.policy_net": "actor.hidden", "mlp_extractor.value_net": "critic.hidden"}
    out = {}
    for name, value in policy.state_dict().items():
        for old, new in names.items():
            if name.startswith(old):
                _, _, index, kind = name.split(".")
                name = f"{new}.{int(index) // 2}.{kind}"
        name = name.replace("action_net", "actor_head").replace("value_net", "critic_head")
        value = value.T if value.ndim == 2 else value  # ours is [inputs, outputs]
        out[name] = {"shape": list(value.shape), "values": numbers(value.contiguous())}
    return out


def record(action_space, seed, **settings):
    rng = np.random.RandomState(seed)
    torch.manual_seed(seed)
    model = PPO(
        "MlpPolicy",
        stable_baselines3.common.vec_env.DummyVecEnv([lambda: Nothing(action_space)] * ROWS),
        n_steps=STEPS,
        batch_size=ROWS * STEPS,
        policy_kwargs={"net_arch": [8, 6]},
        device="cpu",
        **settings,
    )
    model.set_logger(configure(None, []))
    with torch.no_grad():  # make outputs differ visibly: the initial head is nearly 0
        for parameter in model.policy.action_net.parameters():
            parameter.add_(torch.as_tensor(rng.normal(size=parameter.shape) * 0.3, dtype=torch.float32))
    before = weights(model.policy)

    buffer = model.rollout_buffer
    buffer.reset()
    starts = np.ones(ROWS)
    flags = []
    for _ in range(STEPS):
        obs = rng.normal(size=(ROWS, WIDTH)).astype(np.float32)
        with torch.no_grad():
            actions, values, log_probs = model.policy(torch.as_tensor(obs))
        # Pretend that the policy has moved since: ratios leave the clip range in places.
        log_probs = log_probs + torch.as_tensor(rng.normal(size=ROWS) * 0.25, dtype=torch.float32)
        rewards = rng.normal(size=ROWS)
        stored = actions.numpy().reshape(ROWS, -1)
        buffer.add(obs, stored, rewards, starts, values, log_probs)
        starts = (rng.uniform(size=ROWS) < 0.25).astype(np.float64)
        flags.append(starts)
    last_values = torch.as_tensor(rng.normal(size=ROWS), dtype=torch.float32)
    buffer.compute_returns_and_advantage(last_values, starts)
    rollout = {
        "obs": numbers(buffer.observations),
        "action": numbers(buffer.actions),
        "log_prob": numbers(buffer.log_probs),
        "value": numbers(buffer.values),
        "reward": numbers(buffer.rewards),
        "terminated": numbers(np.stack(flags)),
        "last_value": numbers(last_values),
        "advantage": numbers(buffer.advantages),
        "target": numbers(buffer.returns),
    }
    with torch.no_grad():
        actions = torch.as_tensor(buffer.actions.reshape(ROWS * STEPS, -1))
        if action_space.shape == ():
            actions = actions.flatten()
        obs = torch.as_tensor(buffer.observations.reshape(-1, WIDTH))
        values, log_probs, entropy = model.policy.evaluate_actions(obs, actions)
    rollout["evaluated"] = {
        "value": numbers(values),
        "log_prob": numbers(log_probs),
        "entropy": numbers(entropy if entropy is not None else -log_probs),
    }
    model._current_progress_remaining = 1.0
    model.train()
    logged = {k: float(v) for k, v in model.logger.name_to_value.items() if k.startswith("train/")}
    return {
        "gamma": model.gamma,
        "gae_lambda": model.gae_lambda,
        "settings": settings,
        "before": before,
        "rollout": rollout,
        "after": weights(model.policy),
        "logged": logged,
    }


def main(path):
    cases = {
        "discrete": record(gymnasium.spaces.Discrete(3), 1, n_epochs=4, learning_rate=3e-3, ent_coef=0.01),
        "multi_discrete": record(gymnasium.spaces.MultiDiscrete([3, 2]), 2, n_epochs=3, learning_rate=3e-3, ent_coef=0.02),
        "gaussian": record(
            gymnasium.spaces.Box(-1, 1, (2,), np.float32), 3, n_epochs=4, learning_rate=3e-3, ent_coef=0.01, clip_range_vf=0.2
        ),
        "early_stop": record(gymnasium.spaces.Discrete(3), 4, n_epochs=20, learning_rate=3e-2, target_kl=0.08),
        "not_normalized": record(
            gymnasium.spaces.Discrete(3), 5, n_epochs=2, learning_rate=1e-3, normalize_advantage=False, max_grad_norm=0.1, vf_coef=0.7
        ),
    }
    versions = {"torch": torch.__version__, "stable_baselines3": stable_baselines3.__version__, "numpy": np.__version__}
    with open(path, "w") as file:
        json.dump({"versions": versions, "n_rows": ROWS, "n_steps": STEPS, "cases": cases}, file)


if __name__ == "__main__":
    main(sys.argv[1])
