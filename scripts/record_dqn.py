"""Records DQN updates of Stable-Baselines3, and of its variants in plain PyTorch, as golden numbers.

    pip install torch==2.15.0 stable-baselines3==2.9.2 gymnasium==1.2.3
    python scripts/record_dqn.py crates/brasa-dqn/tests/data/updates.json

The batch is made up (random observations, actions, rewards and ends). "plain", "clipped" and "rounds" are
`stable_baselines3.DQN.train`; the others, which it does not have, are written out here. Networks are float64 with
float32 numbers as weights and inputs, so that what is recorded has no rounding of its own. Every case takes several
Adam steps, because the first one shows only the signs of a gradient.
"""

import json
import sys

import gymnasium
import numpy as np
import stable_baselines3
import torch
from stable_baselines3 import DQN
from stable_baselines3.common import policies
from stable_baselines3.common.logger import configure
from stable_baselines3.common.type_aliases import ReplayBufferSamples
from stable_baselines3.common.utils import polyak_update
from stable_baselines3.common.vec_env import DummyVecEnv
from torch import nn

ROWS, WIDTH, ACTIONS = 16, 5, 4
HIDDEN = [8, 6]
GAMMA, LEARNING_RATE = 0.97, 3e-3
MAX_GRAD_NORM = 10.0
STEPS = 3


class Nothing(gymnasium.Env):
    """Only its spaces count."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (WIDTH,), np.float32)
    action_space = gymnasium.spaces.Discrete(ACTIONS)

    def reset(self, seed=None, options=None):
        return np.zeros(WIDTH, np.float32), {}

    def step(self, action):
        return np.zeros(WIDTH, np.float32), 0.0, False, False, {}


class Network(nn.Module):
    """Q values of all actions, from one head or from a value and advantages."""

    def __init__(self, dueling):
        super().__init__()
        widths = [WIDTH, *HIDDEN]
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))
        if dueling:
            self.value = nn.Linear(HIDDEN[-1], 1)
            self.advantage = nn.Linear(HIDDEN[-1], ACTIONS)
        else:
            self.head = nn.Linear(HIDDEN[-1], ACTIONS)

    def forward(self, x):
        for layer in self.hidden:
            x = torch.relu(layer(x))
        if hasattr(self, "head"):
            return self.head(x)
        advantage = self.advantage(x)
        return self.value(x) + advantage - advantage.mean(dim=1, keepdim=True)


def numbers(array):
    array = np.asarray(array.detach().numpy() if isinstance(array, torch.Tensor) else array)
    return [float(x) for x in array.astype(np.float64).reshape(-1)]


def single(array):
    """A float64 tensor of float32 numbers."""
    return torch.as_tensor(np.asarray(array).astype(np.float32).astype(np.float64))


def made_up_weights(module, rng):
    """Noise over the initial weights: target networks differ from learned ones, outputs differ from 0."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(single(parameter + torch.as_tensor(rng.normal(size=parameter.shape) * 0.2)))


def weights(network, target):
    out = {}
    for prefix, module in [("", network), ("target.", target)]:
        for name, value in module.state_dict().items():
            if name.startswith("q_net."):  # layers and activations of Stable-Baselines3 in one list
                _, index, kind = name.split(".")
                layer = int(index) // 2
                name = f"hidden.{layer}.{kind}" if layer < len(HIDDEN) else f"head.{kind}"
            value = value.T if value.ndim == 2 else value  # ours is [inputs, outputs]
            out[prefix + name] = {"shape": list(value.shape), "values": numbers(value.contiguous())}
    return out


def made_up_batch(rng):
    batch = {
        "obs": single(rng.normal(size=(ROWS, WIDTH))),
        "action": single(rng.randint(ACTIONS, size=(ROWS, 1))),
        "reward": single(rng.normal(size=(ROWS, 1)) * 2.0),  # errors on both sides of 1
        "next_obs": single(rng.normal(size=(ROWS, WIDTH))),
        "terminated": single(rng.uniform(size=(ROWS, 1)) < 0.25),
    }
    assert 0 < batch["terminated"].sum() < ROWS
    return batch


def settings(**others):
    return {
        "learning_rate": LEARNING_RATE,
        "gamma": GAMMA,
        "max_grad_norm": MAX_GRAD_NORM,
        "double": False,
        "dueling": False,
        **others,
    }


def check_errors(steps):
    sizes = np.abs(steps[0]["td_error"])
    assert 0 < (sizes < 1.0).sum() < ROWS  # both pieces of the Huber loss


def record_sb3(seed, sync_after=(), **others):
    """`DQN.train` for one gradient step at a time; the target network is copied after the steps in `sync_after`."""
    rng = np.random.RandomState(seed)
    torch.manual_seed(seed)
    used = settings(**others)
    model = DQN(
        "MlpPolicy",
        DummyVecEnv([Nothing]),
        learning_rate=LEARNING_RATE,
        gamma=GAMMA,
        buffer_size=ROWS,
        max_grad_norm=used["max_grad_norm"],
        policy_kwargs={"net_arch": HIDDEN},
        device="cpu",
    )
    model.set_logger(configure(None, []))
    made_up_weights(model.q_net, rng)
    made_up_weights(model.q_net_target, rng)
    before = weights(model.q_net, model.q_net_target)
    batch = made_up_batch(rng)
    samples = ReplayBufferSamples(*(batch[name] for name in ["obs", "action", "next_obs", "terminated", "reward"]))
    model.replay_buffer.sample = lambda *_, **__: samples

    losses, norms = [], []
    smooth_l1_loss, clip_grad_norm_ = nn.functional.smooth_l1_loss, nn.utils.clip_grad_norm_

    def recorded_loss(value, target):
        losses.append((value.detach(), target))
        return smooth_l1_loss(value, target)

    def recorded_clip(*arguments):
        norms.append(clip_grad_norm_(*arguments))

    nn.functional.smooth_l1_loss, nn.utils.clip_grad_norm_ = recorded_loss, recorded_clip
    model._current_progress_remaining = 1.0
    steps = []
    for i in range(4 if sync_after else STEPS):
        model.train(gradient_steps=1, batch_size=ROWS)
        value, y = losses[-1]
        steps.append(
            {
                "q": numbers(value),
                "y": numbers(y),
                "td_error": numbers(value - y),
                "loss": float(model.logger.name_to_value["train/loss"]),
                "grad_norm": float(norms[-1]),
            }
        )
        if i + 1 in sync_after:
            polyak_update(model.q_net.parameters(), model.q_net_target.parameters(), 1.0)
    nn.functional.smooth_l1_loss, nn.utils.clip_grad_norm_ = smooth_l1_loss, clip_grad_norm_
    check_errors(steps)
    return {
        "settings": used,
        "sync_after": list(sync_after),
        "before": before,
        "batch": {name: numbers(value) for name, value in batch.items()},
        "steps": steps,
        "after": weights(model.q_net, model.q_net_target),
    }


def record(seed, double=False, dueling=False, mask=False, weighted=False, n_step=False, squared=False):
    rng = np.random.RandomState(seed)
    torch.manual_seed(seed)
    network, target = Network(dueling), Network(dueling)
    made_up_weights(network, rng)
    made_up_weights(target, rng)
    before = weights(network, target)
    batch = made_up_batch(rng)
    discount = torch.full((ROWS, 1), GAMMA)
    if n_step:
        discount = single(GAMMA ** rng.randint(1, 4, size=(ROWS, 1)))
        batch["discount"] = discount
    importance = torch.ones(ROWS, 1)
    if weighted:
        importance = single(rng.uniform(0.1, 1.0, size=(ROWS, 1)))
        batch["weight"] = importance
    legal = torch.ones(ROWS, ACTIONS)
    if mask:
        legal = single(rng.uniform(size=(ROWS, ACTIONS)) < 0.6)
        legal[legal.sum(dim=1) == 0, 0] = 1.0
        batch["next_legal"] = legal
        chooser = (network if double else target)(batch["next_obs"])
        best_is_illegal = legal.gather(1, chooser.argmax(dim=1, keepdim=True)) == 0.0
        assert 2 < best_is_illegal.sum() < ROWS
        assert (legal.sum(dim=1) == 1.0).any()

    optimizer = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE, eps=1e-8)
    steps = []
    for _ in range(STEPS):
        with torch.no_grad():
            values = target(batch["next_obs"])
            chooser = network(batch["next_obs"]) if double else values
            chosen = chooser.masked_fill(legal == 0.0, -np.inf).argmax(dim=1, keepdim=True)
            y = batch["reward"] + (1.0 - batch["terminated"]) * discount * values.gather(1, chosen)
        q = network(batch["obs"]).gather(1, batch["action"].long())
        error = q - y
        huber = torch.where(error.abs() < 1.0, 0.5 * error**2, error.abs() - 0.5)
        loss = nn.functional.mse_loss(q, y) if squared else (importance * huber).mean()
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(network.parameters(), MAX_GRAD_NORM)
        optimizer.step()
        steps.append(
            {
                "next_action": numbers(chosen),
                "q": numbers(q),
                "y": numbers(y),
                "td_error": numbers(error),
                "loss": float(loss.detach()),
                "grad_norm": float(norm),
            }
        )
    check_errors(steps)
    return {
        "settings": settings(double=double, dueling=dueling, loss="squared" if squared else "huber"),
        "sync_after": [],
        "before": before,
        "batch": {name: numbers(value) for name, value in batch.items()},
        "steps": steps,
        "after": weights(network, target),
    }


def main(path):
    torch.set_default_dtype(torch.float64)
    policies.preprocess_obs = lambda obs, *_, **__: obs  # it would turn observations into float32
    cases = {
        "plain": record_sb3(1),
        "clipped": record_sb3(2, max_grad_norm=0.05),
        "rounds": record_sb3(3, sync_after=(2,)),
        "double": record(4, double=True),
        "dueling": record(5, dueling=True),
        "double_dueling": record(6, double=True, dueling=True),
        "masked": record(7, double=True, mask=True),
        "masked_plain": record(8, mask=True),
        "weighted": record(9, double=True, weighted=True),
        "n_step": record(10, n_step=True),
        "squared": record(11, squared=True),
    }
    assert min(step["grad_norm"] for step in cases["clipped"]["steps"]) > 0.1
    versions = {"torch": torch.__version__, "stable_baselines3": stable_baselines3.__version__, "numpy": np.__version__}
    out = {"versions": versions, "rows": ROWS, "width": WIDTH, "actions": ACTIONS, "hidden": HIDDEN, "cases": cases}
    with open(path, "w") as file:
        json.dump(out, file)


main(sys.argv[1])
