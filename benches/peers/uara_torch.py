"""Thirty independent deep Q-learners of a cellular network in PyTorch, as a loop over agents.

    python benches/peers/uara_torch.py [--form loop] [--threads 1] [--steps 200] [--device cuda]

`loop` is how the published code (cly1994jlu/UARA-DRL) does it, without its defects: every agent has a perceptron, a
target, an RMSprop and a replay of tensors of its own; states are copied when they are stored, nothing is learned
through the target, values end where episodes do, and only stations that cover a user are chosen. `batched` is the same
learning with the weights of all agents in one tensor each, the best that PyTorch offers. The environment is the SINR
rule in numpy, vectorised over users. Prints one line of JSON with milliseconds of acting, stepping and learning, apart
and together. The counterpart is `cargo run --release --package brasa-benches --example team_dqn`.
"""

import argparse
import json
import math
import platform
import random
import time
from collections import deque

import numpy as np
import torch
from torch import nn
from torch.nn import functional

USERS, CHANNELS, BATCH, CAPACITY = 30, 20, 32, 10_000
GAMMA, LEARNING_RATE, EPSILON, CLIP, TARGET_EVERY = 0.9, 1e-3, 0.1, 1.0, 50
WIDTHS = [USERS, 64, 32, 32]


class Network:
    """The preset Cly2020: 2 macro, 8 pico and 16 femto cells; one layout for the whole run."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        macros = np.array([[500.0 + 900.0 * i, 500.0] for i in range(2)])
        angles = np.arange(8) % 4 * math.pi / 2
        picos = macros[np.arange(8) // 4] + 250.0 * np.stack([np.cos(angles), np.sin(angles)], 1)

        def around_macros(n):
            radius, angle = 500.0 * rng.random(n), rng.uniform(-math.pi, math.pi, n)
            return macros[rng.integers(0, 2, n)] + radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)

        stations = np.concatenate([macros, picos, around_macros(16)])
        radius = np.repeat([500.0, 100.0, 30.0], [2, 8, 16])
        transmit_dbm = np.repeat([40.0, 30.0, 20.0], [2, 8, 16])
        at_1_m, decade = np.repeat([34.0, 34.0, 37.0], [2, 8, 16]), np.repeat([40.0, 40.0, 30.0], [2, 8, 16])
        users = around_macros(USERS)
        while True:  # Everybody is covered.
            distance = np.maximum(np.linalg.norm(stations[:, None] - users[None], axis=2), 1.0)
            lost = ~(distance <= radius[:, None]).any(0)
            if not lost.any():
                break
            users[lost] = around_macros(int(lost.sum()))
        self.covered = (distance <= radius[:, None]).T
        loss = at_1_m[:, None] + decade[:, None] * np.log10(distance)
        # Milliwatts, 0 outside of a cell: interference is gated as well.
        self.power = np.where(self.covered.T, 10 ** ((transmit_dbm[:, None] - loss) / 10), 0.0)
        self.noise = 10 ** (-174 / 10) * 180_000.0
        self.wanted = 10 ** (5 / 10)
        self.range = np.arange(USERS)
        self.legal = [np.flatnonzero(np.repeat(row, CHANNELS)) for row in self.covered]

    def reset(self):
        self.steps = 0
        return np.zeros(USERS, np.float32)

    def step(self, options):
        station, channel = np.divmod(options, CHANNELS)
        received = self.power[station]  # [transmission, user]
        together = channel[:, None] == channel[None]
        np.fill_diagonal(together, False)
        interference = (received * together).sum(0)
        satisfied = received[self.range, self.range] >= self.wanted * (interference + self.noise)
        self.steps += 1
        reward = np.where(satisfied, 1.0, -1.0).astype(np.float32)
        return satisfied.astype(np.float32), reward, bool(satisfied.all()), self.steps >= 500


class Perceptron(nn.Module):
    def __init__(self, n_options):
        super().__init__()
        self.hidden = nn.ModuleList([nn.Linear(a, b) for a, b in zip(WIDTHS, WIDTHS[1:])])
        self.head = nn.Linear(WIDTHS[-1], n_options)

    def forward(self, x):
        for layer in self.hidden:
            x = functional.relu(layer(x))
        return self.head(x)


class Agent:
    def __init__(self, legal, n_options):
        self.online, self.target = Perceptron(n_options), Perceptron(n_options)
        self.target.load_state_dict(self.online.state_dict())
        self.optimizer = torch.optim.RMSprop(self.online.parameters(), lr=LEARNING_RATE, momentum=0.005)
        self.memory = deque(maxlen=CAPACITY)
        self.legal = legal
        self.illegal = torch.ones(n_options, dtype=torch.bool)
        self.illegal[torch.as_tensor(legal)] = False
        self.updates = 0

    def act(self, state):
        if random.random() < EPSILON:
            return int(random.choice(self.legal))
        with torch.no_grad():
            return int(self.online(state).masked_fill(self.illegal, -math.inf).argmax(1).item())

    def push(self, state, option, next_state, reward, terminated):
        item = (state, torch.tensor([[option]]), next_state, torch.tensor([reward]), torch.tensor([not terminated]))
        self.memory.append(item)

    def learn(self):
        batch = random.sample(self.memory, BATCH)
        state, option, next_state, reward, goes_on = (torch.cat(part) for part in zip(*batch))
        with torch.no_grad():
            choice = self.online(next_state).masked_fill(self.illegal, -math.inf).argmax(1, keepdim=True)
            next_value = self.target(next_state).gather(1, choice).squeeze(1)
            y = reward + GAMMA * goes_on * next_value
        loss = functional.smooth_l1_loss(self.online(state).gather(1, option).squeeze(1), y)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.online.parameters(), CLIP)
        self.optimizer.step()
        self.updates += 1
        if self.updates % TARGET_EVERY == 0:
            self.target.load_state_dict(self.online.state_dict())


class Loop:
    def __init__(self, network):
        n_options = network.covered.shape[1] * CHANNELS
        self.agents = [Agent(legal, n_options) for legal in network.legal]

    def act(self, state):
        row = torch.from_numpy(state)[None]
        return np.array([agent.act(row) for agent in self.agents])

    def push(self, state, options, next_state, reward, terminated):
        state, next_state = torch.from_numpy(state.copy())[None], torch.from_numpy(next_state.copy())[None]
        for agent, option, own in zip(self.agents, options.tolist(), reward.tolist()):
            agent.push(state, option, next_state, own, terminated)

    def learn(self):
        for agent in self.agents:
            agent.learn()


class Batched:
    """All agents as one problem; state and outcome of a step are stored once, in tensors of fixed size."""

    def __init__(self, network):
        n_options = network.covered.shape[1] * CHANNELS
        agents = [Perceptron(n_options) for _ in range(USERS)]
        layers = [[*agent.hidden, agent.head] for agent in agents]
        self.online = []
        for i in range(len(layers[0])):
            self.online.append(torch.stack([own[i].weight.detach().T for own in layers]).requires_grad_())
            self.online.append(torch.stack([own[i].bias.detach()[None] for own in layers]).requires_grad_())
        self.target = [parameter.detach().clone() for parameter in self.online]
        self.optimizer = torch.optim.RMSprop(self.online, lr=LEARNING_RATE, momentum=0.005, foreach=True)
        self.legal = network.legal
        self.illegal = torch.as_tensor(~np.repeat(network.covered, CHANNELS, 1))[:, None]
        self.state, self.next_state = torch.zeros(CAPACITY, USERS), torch.zeros(CAPACITY, USERS)
        self.option = torch.zeros(CAPACITY, USERS, dtype=torch.long)
        self.reward, self.goes_on = torch.zeros(CAPACITY, USERS), torch.zeros(CAPACITY)
        self.stored = self.updates = 0

    def values(self, parameters, x):
        for weight, bias in zip(parameters[:-2:2], parameters[1:-2:2]):
            x = functional.relu(torch.baddbmm(bias, x, weight))
        return torch.baddbmm(parameters[-1], x, parameters[-2])

    def act(self, state):
        with torch.no_grad():
            x = torch.from_numpy(state).to(self.state.device).expand(USERS, 1, USERS)
            best = self.values(self.online, x).masked_fill(self.illegal, -math.inf).argmax(2).squeeze(1).cpu().numpy()
        explores = np.random.random(USERS) < EPSILON
        return np.where(explores, [random.choice(legal) for legal in self.legal], best)

    def push(self, state, options, next_state, reward, terminated):
        at = self.stored % CAPACITY
        self.state[at], self.next_state[at] = torch.from_numpy(state), torch.from_numpy(next_state)
        self.option[at], self.reward[at] = torch.from_numpy(options), torch.from_numpy(reward)
        self.goes_on[at] = float(not terminated)
        self.stored += 1

    def learn(self):
        rows = torch.randint(min(self.stored, CAPACITY), (USERS, BATCH))
        state, next_state = self.state[rows], self.next_state[rows]
        option = self.option.T.gather(1, rows)
        with torch.no_grad():
            choice = self.values(self.online, next_state).masked_fill(self.illegal, -math.inf).argmax(2, keepdim=True)
            next_value = self.values(self.target, next_state).gather(2, choice).squeeze(2)
            y = self.reward.T.gather(1, rows) + GAMMA * self.goes_on[rows] * next_value
        q = self.values(self.online, state).gather(2, option[..., None]).squeeze(2)
        loss = functional.smooth_l1_loss(q, y, reduction="none").mean(1).sum()
        self.optimizer.zero_grad()
        loss.backward()
        norms = torch.stack([parameter.grad.flatten(1).square().sum(1) for parameter in self.online]).sum(0).sqrt()
        scale = (CLIP / (norms + 1e-6)).clamp(max=1.0)[:, None, None]
        for parameter in self.online:
            parameter.grad.mul_(scale)
        self.optimizer.step()
        self.updates += 1
        if self.updates % TARGET_EVERY == 0:
            for target, parameter in zip(self.target, self.online):
                target.copy_(parameter.detach())


def milliseconds(work, n, wait):
    for _ in range(5):
        work()
    wait()
    begin = time.perf_counter()
    for _ in range(n):
        work()
    wait()
    return round(1e3 * (time.perf_counter() - begin) / n, 4)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--form", choices=["loop", "batched"], default="loop")
    parser.add_argument("--threads", type=int, default=1, help="threads of PyTorch")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--device", default="cpu", help="of the form `batched`; the environment is on the processor")
    arguments = parser.parse_args()

    if arguments.form == "batched":
        torch.set_default_device(arguments.device)
    wait = torch.cuda.synchronize if arguments.device.startswith("cuda") else lambda: None
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0), random.seed(0), np.random.seed(0)
    network = Network(0)
    learner = Loop(network) if arguments.form == "loop" else Batched(network)
    state = network.reset()
    options = learner.act(state)

    def step(learn):
        nonlocal state
        options = learner.act(state)
        next_state, reward, terminated, truncated = network.step(options)
        learner.push(state, options, next_state, reward, terminated)
        state = network.reset() if terminated or truncated else next_state
        if learn:
            learner.learn()

    for _ in range(500):
        step(learn=False)
    result = {
        "library": "pytorch",
        "form": arguments.form,
        "threads": arguments.threads,
        "device": arguments.device,
        "agents": USERS,
        "batch": BATCH,
        "act_ms": milliseconds(lambda: learner.act(state), arguments.steps, wait),
        "environment_ms": milliseconds(lambda: network.step(options), 10 * arguments.steps, wait),
        "learn_ms": milliseconds(learner.learn, arguments.steps, wait),
        "together_ms": milliseconds(lambda: step(learn=True), arguments.steps, wait),
        "legal_options": round(float(network.covered.sum(1).mean()) * CHANNELS, 1),
        "versions": {"python": platform.python_version(), "torch": torch.__version__, "numpy": np.__version__},
    }
    result["steps_per_second"] = round(1e3 / result["together_ms"], 1)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
