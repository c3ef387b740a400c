"""Records TD3 updates of Stable-Baselines3 as golden numbers.

    pip install torch==2.15.0 stable-baselines3==2.9.2 gymnasium==1.4.0
    python scripts/record_td3.py crates/brasa-td3/tests/data/sb3_update.json

The batches are made up (random observations, actions, rewards and ends), a new one for each update, and so is the noise
that smooths target actions; the update itself is `stable_baselines3.TD3.train`. Networks are float64 with float32
numbers as weights and inputs, so that what is recorded has no rounding of its own. Every case takes several updates,
because the first step of Adam shows only the signs of a gradient; weights are recorded after each of them.
"""

import json
import sys

import gymnasium
import numpy as np
import stable_baselines3
import torch
from stable_baselines3 import TD3
from stable_baselines3.common import policies
from stable_baselines3.common.logger import configure
from stable_baselines3.common.type_aliases import ReplayBufferSamples
from stable_baselines3.common.vec_env import DummyVecEnv

ROWS, WIDTH, ACTIONS = 16, 5, 2
HIDDEN = [6, 4]
UPDATES = 6
TAU, LEARNING_RATE = 0.05, 3e-3


class Nothing(gymnasium.Env):
    """Only its spaces count."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (WIDTH,), np.float32)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (ACTIONS,), np.float32)

    def reset(self, seed=None, options=None):
        return np.zeros(WIDTH, np.float32), {}

    def step(self, action):
        return np.zeros(WIDTH, np.float32), 0.0, False, False, {}


def numbers(array):
    """Values with the digits of a float32 number."""
    array = np.asarray(array.detach().numpy() if isinstance(array, torch.Tensor) else array)
    return [float(f"{x:.9g}") for x in array.astype(np.float64).reshape(-1)]


def single(array):
    """A float64 tensor of float32 numbers."""
    return torch.as_tensor(np.asarray(array).astype(np.float32).astype(np.float64))


def weights(model):
    out = {}
    parts = {
        "actor": model.actor,
        "critic": model.critic,
        "actor_target": model.actor_target,
        "critic_target": model.critic_target,
    }
    for part, module in parts.items():
        for name, value in module.state_dict().items():
            net, index, kind = name.split(".")
            net = "" if net == "mu" else net.removeprefix("qf") + "."
            value = value.T if value.ndim == 2 else value  # ours is [inputs, outputs]
            key = f"{part}.{net}{int(index) // 2}.{kind}"
            out[key] = {"shape": list(value.shape), "values": numbers(value.contiguous())}
    return out


def made_up_batch(rng):
    batch = {
        "obs": single(rng.normal(size=(ROWS, WIDTH))),
        "action": single(rng.uniform(-1.0, 1.0, size=(ROWS, ACTIONS))),
        "reward": single(rng.normal(size=(ROWS, 1))),
        "next_obs": single(rng.normal(size=(ROWS, WIDTH))),
        "terminated": single(rng.uniform(size=(ROWS, 1)) < 0.25),
    }
    assert 0 < batch["terminated"].sum() < ROWS
    return batch


def record(seed, n_critics=2, **settings):
    rng = np.random.RandomState(seed)
    torch.manual_seed(seed)
    model = TD3(
        "MlpPolicy",
        DummyVecEnv([Nothing]),
        learning_rate=LEARNING_RATE,
        buffer_size=ROWS,
        tau=TAU,
        policy_kwargs={"net_arch": HIDDEN, "n_critics": n_critics},
        device="cpu",
        **settings,
    )
    model.set_logger(configure(None, []))
    with torch.no_grad():  # target networks that differ from the learned ones
        scales = {model.actor: 0.3, model.actor_target: 0.3, model.critic: 0.1, model.critic_target: 0.1}
        for module, scale in scales.items():
            for parameter in module.parameters():
                parameter.add_(torch.as_tensor(rng.normal(size=parameter.shape) * scale))
        for parameter in model.policy.parameters():
            parameter.copy_(single(parameter))
    before = weights(model)

    # What `train` draws and computes on its way: smoothing noise, target actions, one loss per critic.
    noises, next_actions, losses = [], [], []

    def normal(tensor, mean, std):
        assert mean == 0 and std == model.target_policy_noise
        noises.append(single(rng.normal(size=tuple(tensor.shape))))
        return tensor.copy_(noises[-1] * std)

    mse_loss, normal_ = torch.nn.functional.mse_loss, torch.Tensor.normal_

    def recorded_mse_loss(value, target):
        losses.append((value.detach(), target.detach()))
        return mse_loss(value, target)

    model.critic_target.register_forward_pre_hook(lambda _, args: next_actions.append(args[1]))
    model._current_progress_remaining = 1.0
    updates = []
    for _ in range(UPDATES):
        batch = made_up_batch(rng)
        samples = ReplayBufferSamples(*(batch[name] for name in ["obs", "action", "next_obs", "terminated", "reward"]))
        model.replay_buffer.sample = lambda *_, **__: samples
        losses.clear()
        torch.Tensor.normal_, torch.nn.functional.mse_loss = normal, recorded_mse_loss
        model.train(gradient_steps=1, batch_size=ROWS)
        torch.Tensor.normal_, torch.nn.functional.mse_loss = normal_, mse_loss
        assert len(losses) == n_critics
        target = losses[0][1]
        assert all(torch.equal(target, other) for _, other in losses)
        updates.append(
            {
                "batch": {name: numbers(value) for name, value in batch.items()},
                "noise": numbers(noises[-1]),
                "next_action": numbers(next_actions[-1]),
                "y": numbers(target),
                "q": [numbers(value) for value, _ in losses],
                "logged": {k: float(v) for k, v in model.logger.name_to_value.items() if k.startswith("train/")},
                "after": weights(model),
            }
        )
    assert len(noises) == len(next_actions) == UPDATES
    noise = torch.stack(noises) * model.target_policy_noise
    return {
        "settings": {
            "learning_rate": LEARNING_RATE,
            "gamma": model.gamma,
            "tau": model.tau,
            "policy_delay": model.policy_delay,
            "target_policy_noise": model.target_policy_noise,
            "target_noise_clip": model.target_noise_clip,
            "n_critics": n_critics,
        },
        "clipped_noise": int((noise.abs() > model.target_noise_clip).sum()),
        "clipped_actions": int((torch.stack(next_actions).abs() == 1.0).sum()),
        "before": before,
        "updates": updates,
    }


def main(path):
    torch.set_default_dtype(torch.float64)
    policies.preprocess_obs = lambda obs, *_, **__: obs  # it would turn observations into float32
    cases = {
        "default": record(1),
        "noisy": record(2, policy_delay=3, target_policy_noise=0.6, target_noise_clip=0.4, gamma=0.9),
        "three_critics": record(3, n_critics=3, policy_delay=1),
    }
    assert cases["noisy"]["clipped_noise"] > 0 and cases["noisy"]["clipped_actions"] > 0
    versions = {
        "torch": torch.__version__,
        "stable_baselines3": stable_baselines3.__version__,
        "gymnasium": gymnasium.__version__,
        "numpy": np.__version__,
    }
    out = {"versions": versions, "rows": ROWS, "width": WIDTH, "actions": ACTIONS, "hidden": HIDDEN, "cases": cases}
    with open(path, "w") as file:
        json.dump(out, file, separators=(",", ":"))


main(sys.argv[1])
