#!/usr/bin/env python3
"""Records episodes of POPGym for crates/brasa-classic/src/popgym.

pip install gymnasium==1.4.0 pygame; pip install --no-deps popgym==1.0.7
Usage: python scripts/record_popgym.py > crates/brasa-classic/tests/data/popgym.json

Card games are recorded with the order of their decks. Half of the actions are right ones. PositionOnlyCartPole balances by a rule that sees the
speeds; the noisy one has random noise, so only its settings are recorded.
"""

import json

import numpy as np
from popgym.envs.autoencode import AutoencodeEasy, AutoencodeHard, AutoencodeMedium
from popgym.envs.count_recall import CountRecallEasy, CountRecallHard, CountRecallMedium
from popgym.envs.noisy_position_only_cartpole import (
    NoisyPositionOnlyCartPoleEasy,
    NoisyPositionOnlyCartPoleHard,
    NoisyPositionOnlyCartPoleMedium,
)
from popgym.envs.position_only_cartpole import (
    PositionOnlyCartPoleEasy,
    PositionOnlyCartPoleHard,
    PositionOnlyCartPoleMedium,
)
from popgym.envs.repeat_first import RepeatFirstEasy, RepeatFirstHard, RepeatFirstMedium
from popgym.envs.repeat_previous import RepeatPreviousEasy, RepeatPreviousHard, RepeatPreviousMedium

rng = np.random.default_rng(0)
DIFFICULTIES = ("easy", "medium", "hard")
GAMES = {
    "repeat-first": (RepeatFirstEasy, RepeatFirstMedium, RepeatFirstHard),
    "repeat-previous": (RepeatPreviousEasy, RepeatPreviousMedium, RepeatPreviousHard),
    "count-recall": (CountRecallEasy, CountRecallMedium, CountRecallHard),
    "autoencode": (AutoencodeEasy, AutoencodeMedium, AutoencodeHard),
}


def numbers(obs):
    return [int(x) for x in np.atleast_1d(np.asarray(obs))]


def game(name, difficulty, make, seed):
    env = make()
    obs, _ = env.reset(seed=seed)
    # Cards are dealt from the end.
    if name == "count-recall":
        kinds = env.deck_idx_type
        decks = [kinds[deck.idx][::-1].tolist() for deck in (env.value_deck, env.query_deck)]
    else:
        decks = [env.deck.suits_idx[env.deck.idx][::-1].tolist(), []]
    cards, queries = decks
    episode = {
        "task": name,
        "difficulty": difficulty,
        "cards": cards,
        "queries": queries,
        "n_actions": int(env.action_space.n),
        "actions": [],
        "observations": [numbers(obs)],
        "rewards": [],
        "terminated": [],
    }
    done, step = False, 0
    while not done:
        seen = cards[: step + 1]
        right = {
            "repeat-first": lambda: cards[0],
            "repeat-previous": lambda: seen[-env.k] if len(seen) >= env.k else 0,
            "count-recall": lambda: seen.count(queries[step]),
            "autoencode": lambda: cards[max(2 * len(cards) - 2 - step, 0)] if step >= len(cards) - 1 else 0,
        }[name]()
        action = right if rng.random() < 0.5 else int(rng.integers(env.action_space.n))
        obs, reward, done, truncated, _ = env.step(action)
        assert not truncated
        episode["actions"].append(action)
        episode["observations"].append(numbers(obs))
        episode["rewards"].append(float(reward))
        episode["terminated"].append(bool(done))
        step += 1
    return episode


def cart_pole(difficulty, make, seed):
    env = make()
    obs, _ = env.reset(seed=seed)
    episode = {
        "difficulty": difficulty,
        "state": [float(x) for x in env.state],
        "bounds": [[float(x) for x in bound] for bound in (env.observation_space.low, env.observation_space.high)],
        "actions": [],
        "observations": [[float(x) for x in obs]],
        "rewards": [],
        "terminated": [],
        "truncated": [],
    }
    done = False
    while not done:
        x, v, angle, turn = env.state
        # With a few random pushes one episode falls, the others last.
        action = int(0.1 * x + 0.3 * v + 3 * angle + turn > 0) if rng.random() < (0.3 if seed == 1 else 1.0) else int(rng.integers(2))
        obs, reward, terminated, truncated, _ = env.step(action)
        done = terminated or truncated
        episode["actions"].append(action)
        episode["observations"].append([float(x) for x in obs])
        episode["rewards"].append(float(reward))
        episode["terminated"].append(bool(terminated))
        episode["truncated"].append(bool(truncated))
    return episode


cards = [
    game(name, difficulty, make, seed)
    for seed, (name, makes) in enumerate(GAMES.items())
    for difficulty, make in zip(DIFFICULTIES, makes)
]
poles = [
    cart_pole(difficulty, make, seed)
    for seed, (difficulty, make) in enumerate(
        zip(DIFFICULTIES, (PositionOnlyCartPoleEasy, PositionOnlyCartPoleMedium, PositionOnlyCartPoleHard))
    )
]
noisy = [
    {"difficulty": difficulty, "sigma": float(env.noise_sigma[0]), "steps": env.max_episode_length}
    for difficulty, env in zip(
        DIFFICULTIES,
        (NoisyPositionOnlyCartPoleEasy(), NoisyPositionOnlyCartPoleMedium(), NoisyPositionOnlyCartPoleHard()),
    )
]
print(json.dumps({"cards": cards, "poles": poles, "noisy": noisy}, separators=(",", ":")))
