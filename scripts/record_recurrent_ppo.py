"""Records one update of sb3-contrib's RecurrentPPO as golden numbers.

    pip install torch==2.15.0 sb3-contrib==2.9.2 gymnasium==1.4.0
    python scripts/record_recurrent_ppo.py crates/brasa-ppo/tests/data/sb3_recurrent_update.json

The rollout is made up, as in `record_ppo.py`; it begins in the middle of episodes, and episodes end in it. The update is `RecurrentPPO.train` with
one minibatch per epoch. RecurrentPPO cuts the rollout at a random place, where gradients stop; here the cut is at its beginning.
"""

import json
import sys

import gymnasium
import numpy as np
import sb3_contrib
import stable_baselines3
import torch
from record_ppo import ROWS, STEPS, WIDTH, Nothing, numbers
from sb3_contrib import RecurrentPPO
from sb3_contrib.common.recurrent.type_aliases import RNNStates
from stable_baselines3.common.logger import configure

CELLS = 6


def weights(policy):
    out = {}
    for name, value in policy.state_dict().items():
        value = value.T if value.ndim == 2 else value  # ours is [inputs, outputs]
        name = name.replace("lstm_actor.", "actor_memory.").replace("lstm_critic.", "critic_memory.")
        for part, kind in (("ih", "input"), ("hh", "output")):
            name = name.replace(f"weight_{part}_l0", f"{kind}.weight").replace(f"bias_{part}_l0", f"{kind}.bias")
        for old, new in (("mlp_extractor.policy_net.", "actor.hidden."), ("mlp_extractor.value_net.", "critic.hidden.")):
            if name.startswith(old):
                index, kind = name.removeprefix(old).split(".")
                name = f"{new}{int(index) // 2}.{kind}"
        name = name.replace("action_net", "actor_head").replace("value_net", "critic_head")
        out[name] = {"shape": list(value.shape), "values": numbers(value.contiguous())}
    return out


def record(action_space, seed, shared, **settings):
    rng = np.random.RandomState(seed)
    torch.manual_seed(seed)
    model = RecurrentPPO(
        "MlpLstmPolicy",
        stable_baselines3.common.vec_env.DummyVecEnv([lambda: Nothing(action_space)] * ROWS),
        n_steps=STEPS,
        batch_size=ROWS * STEPS,
        policy_kwargs={"net_arch": [8], "lstm_hidden_size": CELLS, "shared_lstm": shared, "enable_critic_lstm": not shared},
        device="cpu",
        **settings,
    )
    model.set_logger(configure(None, []))
    with torch.no_grad():
        for parameter in model.policy.action_net.parameters():
            parameter.add_(torch.as_tensor(rng.normal(size=parameter.shape) * 0.3, dtype=torch.float32))
    before = weights(model.policy)
    state = lambda: torch.as_tensor(rng.normal(size=(1, ROWS, CELLS)) * 0.5, dtype=torch.float32)
    states = RNNStates((state(), state()), (state(), state()))
    # Row by row: output and memory of the actor's layer, then those of the critic's.
    parts = states.pi if shared else (*states.pi, *states.vf)
    first = numbers(torch.cat([part[0] for part in parts], 1))

    buffer = model.rollout_buffer
    buffer.reset()
    starts, flags = np.zeros(ROWS), []
    for _ in range(STEPS):
        obs = rng.normal(size=(ROWS, WIDTH)).astype(np.float32)
        with torch.no_grad():
            begins = torch.as_tensor(starts, dtype=torch.float32)
            actions, values, log_probs, after = model.policy(torch.as_tensor(obs), states, begins)
        log_probs = log_probs + torch.as_tensor(rng.normal(size=ROWS) * 0.25, dtype=torch.float32)
        stored = actions.numpy().reshape(ROWS, -1)
        buffer.add(obs, stored, rng.normal(size=ROWS), starts, values, log_probs, lstm_states=states)
        states, starts = after, (rng.uniform(size=ROWS) < 0.25).astype(np.float64)
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
        "state": first,
    }
    model._current_progress_remaining = 1.0
    np.random.randint = lambda *_: 0
    model.train()
    logged = {k: float(v) for k, v in model.logger.name_to_value.items() if k.startswith("train/")}
    return {
        "gamma": model.gamma,
        "gae_lambda": model.gae_lambda,
        "shared": shared,
        "settings": settings,
        "before": before,
        "rollout": rollout,
        "after": weights(model.policy),
        "logged": logged,
    }


def main(path):
    box = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    cases = {
        "discrete": record(gymnasium.spaces.Discrete(3), 1, False, n_epochs=4, learning_rate=3e-3, ent_coef=0.01),
        "gaussian": record(box, 2, False, n_epochs=3, learning_rate=3e-3, ent_coef=0.01, clip_range_vf=0.2),
        # With one layer for both, RecurrentPPO stops the gradient of the critic before it; without that loss there is no difference.
        "shared": record(gymnasium.spaces.Discrete(3), 3, True, n_epochs=4, learning_rate=3e-3, max_grad_norm=0.1, vf_coef=0.0),
    }
    versions = {"torch": torch.__version__, "sb3_contrib": sb3_contrib.__version__, "numpy": np.__version__}
    with open(path, "w") as file:
        json.dump({"versions": versions, "n_rows": ROWS, "n_steps": STEPS, "cells": CELLS, "cases": cases}, file)


if __name__ == "__main__":
    main(sys.argv[1])
