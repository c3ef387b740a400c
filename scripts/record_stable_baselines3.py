"""Records models that Stable-Baselines3 saved, with observations and the actions that it computes for them.

    record_stable_baselines3.py OUT [NAME ...]

Needs stable-baselines3, sb3-contrib and gymnasium (PyPI). Writes OUT/<name>.zip with the parts that matter (other settings have
paths of the machine in them), OUT/<name>.pkl where observations are normalized, and OUT/expected.json. With names, only these are
recorded again.
"""

import json
import sys
import zipfile
from pathlib import Path

import gymnasium as gym
import numpy as np
import sb3_contrib
import stable_baselines3 as sb3
import torch
from gymnasium import spaces
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize


class Choices(gym.Env):
    """Several choices at once; nothing is to be learned."""

    observation_space = spaces.Box(-1.0, 1.0, (2, 3), np.float32)
    action_space = spaces.MultiDiscrete([3, 2, 4])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), float(action[0]), False, True, {}


class Bounded(gym.Env):
    """Continuous actions with different bounds."""

    observation_space = spaces.Box(-1.0, 1.0, (3,), np.float32)
    action_space = spaces.Box(np.array([-0.1, 0.0], np.float32), np.array([0.3, 5.0], np.float32))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), float(action[0]), False, True, {}


class Spaces(gym.Env):
    """Any spaces; nothing is to be learned."""

    def __init__(self, observation_space, action_space):
        self.observation_space, self.action_space = observation_space, action_space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), float(np.sum(action)), False, True, {}


NUMBERS = spaces.Box(-1.0, 1.0, (3,), np.float32)
PARTS = spaces.Dict({"b": NUMBERS, "a": spaces.Discrete(3), "c": spaces.MultiBinary(2)})


def of_old_gym(data):
    """As Gym before 0.22 wrote a discrete space: the number of actions is no text, and nothing says where they start."""
    space = data["action_space"]
    space[":type:"] = "<class 'gym.spaces.discrete.Discrete'>"
    space["n"] = int(space["n"])
    for key in ("start", "_shape"):
        space.pop(key, None)


EDITS = {"ppo_old_gym": of_old_gym}


def normalized(norm_obs=True):
    """Pendulum with normalized observations, clipped early so that the limit matters."""
    return VecNormalize(DummyVecEnv([lambda: gym.make("Pendulum-v1")]), norm_obs=norm_obs, clip_obs=1.5)


def small(**other):
    return dict(net_arch=[8, 6], **other)


models = {
    "ppo": lambda: sb3.PPO("MlpPolicy", "CartPole-v1", n_steps=64, policy_kwargs=small(), seed=1),
    "ppo_relu": lambda: sb3.PPO(
        "MlpPolicy", Bounded(), n_steps=64, seed=2, policy_kwargs=small(activation_fn=torch.nn.ReLU)
    ),
    "ppo_choices": lambda: sb3.PPO("MlpPolicy", Choices(), n_steps=64, policy_kwargs=small(), seed=3),
    "a2c": lambda: sb3.A2C("MlpPolicy", "Pendulum-v1", policy_kwargs=small(), seed=4),
    "a2c_sde": lambda: sb3.A2C(
        "MlpPolicy", Bounded(), use_sde=True, seed=5, policy_kwargs=small(squash_output=True)
    ),
    "sac": lambda: sb3.SAC("MlpPolicy", Bounded(), policy_kwargs=small(), seed=6, learning_starts=10),
    "sac_sde": lambda: sb3.SAC(
        "MlpPolicy", "Pendulum-v1", use_sde=True, policy_kwargs=small(), seed=7, learning_starts=10
    ),
    "td3": lambda: sb3.TD3("MlpPolicy", Bounded(), policy_kwargs=small(), seed=8, learning_starts=10),
    "ddpg": lambda: sb3.DDPG("MlpPolicy", "Pendulum-v1", policy_kwargs=small(), seed=9, learning_starts=10),
    "ppo_normalized": lambda: sb3.PPO("MlpPolicy", normalized(), n_steps=64, policy_kwargs=small(), seed=11),
    "ppo_rewards_normalized": lambda: sb3.PPO("MlpPolicy", normalized(False), n_steps=64, policy_kwargs=small(), seed=12),
    "dqn": lambda: sb3.DQN("MlpPolicy", "CartPole-v1", policy_kwargs=small(), seed=10, learning_starts=10),
    "ppo_old_gym": lambda: sb3.PPO("MlpPolicy", "CartPole-v1", n_steps=64, policy_kwargs=small(), seed=13),
    "ppo_leaky_relu": lambda: sb3.PPO(
        "MlpPolicy", Bounded(), n_steps=64, seed=14, policy_kwargs=small(activation_fn=torch.nn.LeakyReLU)
    ),
    "ppo_bits": lambda: sb3.PPO(
        "MlpPolicy", Spaces(NUMBERS, spaces.MultiBinary(4)), n_steps=64, policy_kwargs=small(), seed=15
    ),
    "ppo_discrete_obs": lambda: sb3.PPO(
        "MlpPolicy", Spaces(spaces.Discrete(7), Bounded.action_space), n_steps=64, policy_kwargs=small(), seed=16
    ),
    "dqn_choices_obs": lambda: sb3.DQN(
        "MlpPolicy", Spaces(spaces.MultiDiscrete([3, 5]), spaces.Discrete(3)), policy_kwargs=small(), seed=17, learning_starts=10
    ),
    "a2c_bits_obs": lambda: sb3.A2C(
        "MlpPolicy", Spaces(spaces.MultiBinary(5), Bounded.action_space), policy_kwargs=small(), seed=18
    ),
    "ppo_dict_obs": lambda: sb3.PPO(
        "MultiInputPolicy", Spaces(PARTS, Bounded.action_space), n_steps=64, policy_kwargs=small(), seed=19
    ),
    "sac_clip_mean": lambda: sb3.SAC(
        "MlpPolicy", "Pendulum-v1", use_sde=True, policy_kwargs=small(clip_mean=0.3), seed=20, learning_starts=10
    ),
    "sac_no_clip_mean": lambda: sb3.SAC(
        "MlpPolicy", "Pendulum-v1", use_sde=True, policy_kwargs=small(clip_mean=0.0), seed=21, learning_starts=10
    ),
    # With a class among them, settings are texts.
    "ppo_texts": lambda: sb3.PPO(
        "MlpPolicy", Bounded(), n_steps=64, use_sde=True, seed=22,
        policy_kwargs=small(activation_fn=torch.nn.ELU, squash_output=True),
    ),
    "sac_texts": lambda: sb3.SAC(
        "MlpPolicy", "Pendulum-v1", use_sde=True, seed=23, learning_starts=10,
        policy_kwargs=small(activation_fn=torch.nn.Tanh, clip_mean=0.3),
    ),
    "ppo_linear": lambda: sb3.PPO("MlpPolicy", Bounded(), n_steps=64, policy_kwargs=dict(net_arch=[]), seed=24),
    "qrdqn": lambda: sb3_contrib.QRDQN(
        "MlpPolicy", "CartPole-v1", policy_kwargs=small(n_quantiles=5), seed=25, learning_starts=10
    ),
    "tqc": lambda: sb3_contrib.TQC("MlpPolicy", Bounded(), policy_kwargs=small(n_quantiles=3), seed=26, learning_starts=10),
    "trpo": lambda: sb3_contrib.TRPO("MlpPolicy", Bounded(), n_steps=64, policy_kwargs=small(), seed=27),
    "ars": lambda: sb3_contrib.ARS("MlpPolicy", Bounded(), n_delta=2, policy_kwargs=small(), seed=28),
    "ars_linear": lambda: sb3_contrib.ARS("LinearPolicy", Bounded(), n_delta=2, seed=29),
}

out = Path(sys.argv[1])
out.mkdir(parents=True, exist_ok=True)
names = sys.argv[2:] or list(models)
expected = json.loads((out / "expected.json").read_text()) if sys.argv[2:] else {}
expected |= {"versions": {"stable-baselines3": sb3.__version__, "gymnasium": gym.__version__, "torch": torch.__version__}}
for name in names:
    model = models[name]()
    model.learn(128)
    if name.startswith("ars"):
        # They begin with zeros.
        with torch.no_grad():
            for parameter in model.policy.parameters():
                parameter.add_(torch.from_numpy(np.random.default_rng(1).normal(0, 0.3, parameter.shape)).to(parameter))
    # Larger weights: policies that always act alike show nothing.
    with torch.no_grad():
        for parameter in model.policy.parameters():
            parameter.mul_(3.0)
    path = out / f"{name}.zip"
    model.save(path)
    with zipfile.ZipFile(path) as archive:
        data = json.loads(archive.read("data"))
        kept = {"policy.pth": archive.read("policy.pth")}
    EDITS.get(name, lambda _: None)(data)
    data = {key: data[key] for key in ("policy_kwargs", "use_sde", "observation_space", "action_space") if key in data}
    for value in data.values():
        if isinstance(value, dict):
            value.pop(":serialized:", None)
    kept["data"] = json.dumps(data).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for part, content in kept.items():
            archive.writestr(part, content)
    rng = np.random.default_rng(0)
    shape = model.observation_space.shape
    space = model.observation_space
    if isinstance(space, spaces.Box):
        obs = rng.uniform(-2.0, 2.0, (40, *shape)).astype(np.float32)
        flat = obs
    else:
        # The form that Brasa takes is that of `flatten`.
        space.seed(0)
        samples = [space.sample() for _ in range(40)]
        flat = np.stack([spaces.flatten(space, sample) for sample in samples]).astype(np.float32)
        is_dict = isinstance(space, spaces.Dict)
        obs = {key: np.stack([sample[key] for sample in samples]) for key in space} if is_dict else np.stack(samples)
    normalize = model.get_vec_normalize_env()
    if normalize is not None:
        normalize.save(out / f"{name}.pkl")
    seen = obs if normalize is None else normalize.normalize_obs(obs)
    action, _ = model.predict(seen, deterministic=True)
    expected[name] = {
        "obs": flat.reshape(40, -1).ravel().tolist(),
        "action": np.asarray(action, dtype=np.float64).reshape(40, -1).ravel().tolist(),
    }
    print(name, path.stat().st_size, "bytes")
(out / "expected.json").write_text(json.dumps(expected) + "\n")
