"""Records updates of recurrent DQN (R2D2) in plain PyTorch as golden numbers.

    pip install torch==2.9.1
    python scripts/record_recurrent_dqn.py crates/brasa-dqn/tests/data/recurrent_updates.json

The recurrent layers are PyTorch's `nn.LSTM` and `nn.GRU`, one step at a time; episodes begin within sequences, where the state is set to 0.
Targets are those of Kapturowski et al. 2019: both networks compute their states behind the burn-in, and the value of an observation `n` steps
later is that behind the states of the steps between. The batch is made up. Networks are float64 with float32 numbers as weights and inputs.
"""

import json
import sys

import numpy as np
import torch
from torch import nn

WIDTH, ACTIONS, CELLS = 4, 3, 6
ENCODER, HIDDEN = [7], [5]
SEQUENCES, BURN_IN, LENGTH = 3, 2, 5
GAMMA, LEARNING_RATE, MAX_GRAD_NORM, STEPS = 0.97, 3e-3, 10.0, 3


class Network(nn.Module):
    def __init__(self, kind, dueling):
        super().__init__()
        widths = [WIDTH, *ENCODER]
        self.encoder = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))
        self.kind = kind
        self.memory = {"lstm": nn.LSTM, "gru": nn.GRU}[kind](widths[-1], CELLS)
        widths = [CELLS, *HIDDEN]
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))
        self.head = nn.Linear(widths[-1], ACTIONS)
        self.value = nn.Linear(widths[-1], 1) if dueling else None

    def step(self, x, state):
        """Values of all actions, and the state behind them: `[n, cells]` or `[n, 2 * cells]`."""
        for layer in self.encoder:
            x = torch.relu(layer(x))
        if self.kind == "lstm":
            h, c = (part[None].contiguous() for part in state.split(CELLS, dim=1))
            y, (h, c) = self.memory(x[None], (h, c))
            state = torch.cat([h[0], c[0]], dim=1)
        else:
            y, h = self.memory(x[None], state[None].contiguous())
            state = h[0]
        x = y[0]
        for layer in self.hidden:
            x = torch.relu(layer(x))
        values = self.head(x)
        if self.value is not None:
            values = self.value(x) + values - values.mean(dim=1, keepdim=True)
        return values, state

    def unrolled(self, obs, starts, state):
        """Values of `[steps, n, actions]`, and the states behind the steps."""
        values, states = [], []
        for x, start in zip(obs, starts):
            value, state = self.step(x, state * (1.0 - start[:, None]))
            values.append(value)
            states.append(state)
        return torch.stack(values), torch.stack(states)


def numbers(array):
    return [float(x) for x in array.detach().numpy().astype(np.float64).reshape(-1)]


def single(array):
    """A float64 tensor of float32 numbers."""
    return torch.as_tensor(np.asarray(array).astype(np.float32).astype(np.float64))


def weights(network, target):
    out = {}
    for prefix, module in [("network.", network), ("target.", target)]:
        for name, value in module.state_dict().items():
            if name.startswith("memory."):
                kind, source = name.split(".")[1].split("_")[:2]
                name = f"memory.{'input' if source == 'ih' else 'output'}.{kind}"
            elif name.startswith("encoder."):
                name = name.replace("encoder.", "encoder.hidden.")
            else:
                name = "network." + name.replace("hidden.", "body.hidden.")
            value = value.T if value.ndim == 2 else value  # ours is [inputs, outputs]
            out[prefix + name] = {"shape": list(value.shape), "values": numbers(value.contiguous())}
    return out


def rescaled(x):
    return x.sign() * ((x.abs() + 1.0).sqrt() - 1.0) + 1e-3 * x


def unscaled(x):
    """The root of `rescaled(y) = x`, by bisection: nothing of the closed form is used."""
    low, high = torch.full_like(x, -1e6), torch.full_like(x, 1e6)
    for _ in range(200):
        middle = (low + high) / 2.0
        above = rescaled(middle) > x
        low, high = torch.where(above, low, middle), torch.where(above, middle, high)
    return (low + high) / 2.0


def record(seed, kind, n_step=1, double=True, dueling=False, rescale=False, burn_in=BURN_IN):
    rng = np.random.RandomState(seed)
    torch.manual_seed(seed)
    network, target = Network(kind, dueling), Network(kind, dueling)
    with torch.no_grad():
        for module in (network, target):
            for parameter in module.parameters():
                parameter.copy_(single(parameter + torch.as_tensor(rng.normal(size=parameter.shape) * 0.2)))
    before = weights(network, target)

    steps = burn_in + LENGTH + n_step - 1
    obs = single(rng.normal(size=(steps, SEQUENCES, WIDTH)))
    after = single(rng.normal(size=(steps, SEQUENCES, WIDTH)))  # next observations, of no use but for targets
    action = single(rng.randint(ACTIONS, size=(steps, SEQUENCES)))
    reward = single(rng.normal(size=(steps, SEQUENCES)) * 2.0)
    ended = single(rng.uniform(size=(steps, SEQUENCES)) < 0.3)
    terminated = ended * single(rng.uniform(size=(steps, SEQUENCES)) < 0.5)
    starts = torch.cat([torch.zeros(1, SEQUENCES), ended[:-1]])
    importance = single(rng.uniform(0.3, 1.0, size=SEQUENCES))
    state = single(rng.normal(size=(SEQUENCES, CELLS * (2 if kind == "lstm" else 1))) * 0.5)
    assert starts[burn_in:].sum() > 0 and 0 < terminated.sum() < ended.sum()

    # n-step returns end with their episode. `taken` steps are taken in all; the next observation is behind the last of them.
    returns, discounts = torch.zeros(steps, SEQUENCES), torch.zeros(steps, SEQUENCES)
    next_obs, last = torch.zeros(steps, SEQUENCES, WIDTH), torch.zeros(steps, SEQUENCES)
    for t in range(steps):
        for i in range(SEQUENCES):
            for k in range(n_step):
                at = min(t + k, steps - 1)
                returns[t, i] += GAMMA**k * reward[at, i]
                next_obs[t, i], last[t, i] = after[at, i], at
                discounts[t, i] = GAMMA ** (k + 1) * (1.0 - terminated[at, i])
                if ended[at, i] == 1.0 or t + k >= steps - 1:
                    break
    returns, discounts = single(returns), single(discounts)

    optimizer = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE, eps=1e-8)
    recorded = []
    for _ in range(STEPS):
        with torch.no_grad():
            warm = {}
            for name, module in (("network", network), ("target", target)):
                warm[name] = module.unrolled(obs[:burn_in], starts[:burn_in], state)[1][-1] if burn_in else state
            behind = {
                name: module.unrolled(obs[burn_in:], starts[burn_in:], warm[name])[1]
                for name, module in (("network", network), ("target", target))
            }

            def next_values(name, module, t):
                rows = (last[t].long() - burn_in, torch.arange(SEQUENCES))
                return module.step(next_obs[t], behind[name][rows])[0]

            y = []
            for t in range(burn_in, burn_in + LENGTH):
                values = next_values("target", target, t)
                chooser = next_values("network", network, t) if double else values
                best = values.gather(1, chooser.argmax(dim=1, keepdim=True))[:, 0]
                best = unscaled(best) if rescale else best
                best = returns[t] + discounts[t] * best
                y.append(rescaled(best) if rescale else best)
            y = torch.stack(y)
        learned = slice(burn_in, burn_in + LENGTH)
        values, _ = network.unrolled(obs[learned], starts[learned], warm["network"])
        q = values.gather(2, action[learned].long()[..., None])[..., 0]
        error = q - y
        huber = torch.where(error.abs() < 1.0, 0.5 * error**2, error.abs() - 0.5)
        loss = (importance[None] * huber).mean()
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(network.parameters(), MAX_GRAD_NORM)
        optimizer.step()
        recorded.append({"td_error": numbers(error), "loss": float(loss.detach()), "grad_norm": float(norm)})
    sizes = np.abs(recorded[0]["td_error"])
    assert 0 < (sizes < 1.0).sum() < sizes.size  # both pieces of the Huber loss
    return {
        "settings": {
            "kind": kind,
            "n_step": n_step,
            "double": double,
            "dueling": dueling,
            "rescale": rescale,
            "burn_in": burn_in,
        },
        "before": before,
        "batch": {
            "obs": numbers(obs),
            "action": numbers(action),
            "reward": numbers(returns),
            "next_obs": numbers(single(next_obs)),
            "discount": numbers(discounts),
            "last": [int(last[t, i]) * SEQUENCES + i for t in range(steps) for i in range(SEQUENCES)],
            "starts": numbers(starts),
            "state": numbers(state),
            "importance": numbers(importance),
        },
        "steps": recorded,
        "after": weights(network, target),
    }


def main(path):
    torch.set_default_dtype(torch.float64)
    cases = {
        "lstm": record(1, "lstm"),
        "gru": record(2, "gru"),
        "n_step": record(3, "gru", n_step=3),
        "rescaled": record(4, "lstm", n_step=3, rescale=True, dueling=True),
        "stored": record(5, "gru", double=False, burn_in=0),
    }
    sizes = {"width": WIDTH, "actions": ACTIONS, "cells": CELLS, "encoder": ENCODER, "hidden": HIDDEN}
    run = {"sequences": SEQUENCES, "length": LENGTH, "learning_rate": LEARNING_RATE, "max_grad_norm": MAX_GRAD_NORM}
    versions = {"torch": torch.__version__, "numpy": np.__version__}
    with open(path, "w") as file:
        json.dump({"versions": versions, **sizes, **run, "cases": cases}, file)


main(sys.argv[1])
