"""A team with the interface of PettingZoo's parallel API, for the tests of brasa-gym."""

import numpy as np
from gymnasium import spaces


class Relay:
    """Runners spend energy; one without leaves. The episode ends when all have left, or is cut after twelve steps."""

    metadata = {"name": "relay", "render_fps": 4}

    def __init__(self, fault="none", masked=True, render_mode=None):
        self.possible_agents = ["ann", "bob", "eve"]
        self.fault, self.masked = fault, masked
        self.agents = []

    def observation_space(self, agent):
        high = 2.0 if self.fault == "spaces" and agent == "eve" else 20.0
        return spaces.Dict({"energy": spaces.Box(-5.0, high, (1,)), "lane": spaces.Discrete(3)})

    def action_space(self, agent):
        return spaces.Discrete(3, start=1)

    def look(self):
        lane = {agent: i for i, agent in enumerate(self.possible_agents)}
        obs = {agent: {"energy": np.array([self.energy[agent]], np.float32), "lane": lane[agent]} for agent in self.seen}
        if self.fault == "nan" and self.steps == 3:
            obs["bob"]["energy"][0] = np.nan
        # Walking is always legal.
        self.legal = {agent: np.array([1, *self.rng.integers(0, 2, 2)], np.int8) for agent in self.seen}
        return obs, {agent: {"action_mask": self.legal[agent]} if self.masked else {} for agent in self.seen}

    def reset(self, seed=None, options=None):
        self.rng = np.random.default_rng(seed)
        self.agents = self.seen = list(self.possible_agents)
        self.energy = {agent: float(self.rng.uniform(1.0, 15.0)) for agent in self.agents}
        self.steps = 0
        return self.look()

    def step(self, actions):
        assert list(actions) == self.agents, f"{list(actions)} act, {self.agents} are there"
        assert all(type(action) is np.int64 and 1 <= action <= 3 for action in actions.values())
        if self.masked:
            assert all(self.legal[agent][action - 1] for agent, action in actions.items()), "an action is illegal"
        self.steps += 1
        self.seen = self.agents
        for agent, action in actions.items():
            self.energy[agent] -= float(action) * self.rng.uniform(0.5, 1.0)
        obs, infos = self.look()
        rewards = {agent: float(action) for agent, action in actions.items()}
        terminations = {agent: self.energy[agent] <= 0.0 for agent in self.agents}
        truncations = {agent: self.steps == 12 for agent in self.agents}
        self.agents = [agent for agent in self.agents if not (terminations[agent] or truncations[agent])]
        return obs, rewards, terminations, truncations, infos

    def render(self):
        # A pixel for each runner: bright if it is there, and the step in blue.
        return np.array([[[200 * (agent in self.seen), 0, self.steps] for agent in self.possible_agents]], np.uint8)

    def close(self):
        pass


class Doubled:
    """A wrapper: twice the rewards."""

    def __init__(self, env):
        self.env = env

    def __getattr__(self, name):
        # Pickles ask for attributes before there is an environment.
        if name == "env":
            raise AttributeError(name)
        return getattr(self.env, name)

    def step(self, actions):
        obs, rewards, *rest = self.env.step(actions)
        return obs, {agent: 2.0 * reward for agent, reward in rewards.items()}, *rest


def parallel_env(**kwargs):
    return Relay(**kwargs)
