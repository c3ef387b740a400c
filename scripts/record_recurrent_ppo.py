"""Records one update of sb3-contrib's RecurrentPPO as golden numbers.

    pip install torch==2.15.0 sb3-contrib==2.9.2 gymnasium==1.4.0
    python scripts/record_recurrent_ppo.py crates/brasa-ppo/tests/data/sb3_recurrent_update.json

The rollout is made up, as in `record_ppo.py`; it begins in the middle of episodes, and episodes end in it. The update is `RecurrentPPO.train` with
one minibatch per epoch. RecurrentPPO cuts the rollout at a random place, where gradients stop; here the cut is at its beginning.
"""

import sys

import gymnasium
import numpy as np
import sb3_contrib
import torch
from recording import ROWS, STEPS, Nothing, array, fill, learner, numbers, updated, write
from sb3_contrib import RecurrentPPO
from sb3_contrib.common.recurrent.type_aliases import RNNStates

CELLS = 6


def weights(policy):
    out = {}
    for name, value in policy.state_dict().items():
        name = name.replace("lstm_actor.", "actor_memory.").replace("lstm_critic.", "critic_memory.")
        for part, kind in (("ih", "input"), ("hh", "output")):
            name = name.replace(f"weight_{part}_l0", f"{kind}.weight").replace(f"bias_{part}_l0", f"{kind}.bias")
        for old, new in (("mlp_extractor.policy_net.", "actor.hidden."), ("mlp_extractor.value_net.", "critic.hidden.")):
            if name.startswith(old):
                index, kind = name.removeprefix(old).split(".")
                name = f"{new}{int(index) // 2}.{kind}"
        name = name.replace("action_net", "actor_head").replace("value_net", "critic_head")
        if name == "log_std" and value.ndim == 2:
            # The matrix of state-dependent exploration is [inputs, outputs] there, too.
            out["matrix"] = array(value.T)
        else:
            out[name] = array(value)
    return out


def record(action_space, seed, shared, **settings):
    rng = np.random.RandomState(seed)
    policy = {"net_arch": [8], "lstm_hidden_size": CELLS, "shared_lstm": shared, "enable_critic_lstm": not shared}
    own = {"batch_size": ROWS * STEPS, "policy_kwargs": policy}
    model = learner(RecurrentPPO, "MlpLstmPolicy", lambda: Nothing(action_space), rng, seed, **own, **settings)
    before = weights(model.policy)
    state = lambda: torch.as_tensor(rng.normal(size=(1, ROWS, CELLS)) * 0.5, dtype=torch.float32)
    states = RNNStates((state(), state()), (state(), state()))
    # Row by row: output and memory of the actor's layer, then those of the critic's.
    parts = states.pi if shared else (*states.pi, *states.vf)
    first = numbers(torch.cat([part[0] for part in parts], 1))

    def act(obs, starts):
        nonlocal states
        if model.use_sde:
            model.policy.reset_noise(ROWS)
        before, begins = states, torch.as_tensor(starts, dtype=torch.float32)
        actions, values, log_probs, states = model.policy(obs, states, begins)
        return actions, values, log_probs, {"lstm_states": before}

    rollout = {**fill(model, rng, act=act, starts=0.0), "state": first}
    del rollout["advantage"], rollout["target"]
    np.random.randint = lambda *_: 0
    return updated(model, settings, weights, before, rollout, shared=shared)


def main(path):
    box = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    clipped = lambda clip: record(box, 2, False, n_epochs=3, learning_rate=3e-3, ent_coef=0.01, clip_range_vf=clip)
    cases = {
        "discrete": record(gymnasium.spaces.Discrete(3), 1, False, n_epochs=4, learning_rate=3e-3, ent_coef=0.01),
        "gaussian": clipped(0.01),
        "state_dependent": record(box, 4, False, n_epochs=3, learning_rate=3e-3, use_sde=True, sde_sample_freq=4),
        # With one layer for both, RecurrentPPO stops the gradient of the critic before it; without that loss there is no difference.
        "shared": record(gymnasium.spaces.Discrete(3), 3, True, n_epochs=4, learning_rate=3e-3, max_grad_norm=0.1, vf_coef=0.0),
    }
    # Values have left the range.
    assert cases["gaussian"]["after"] != clipped(100.0)["after"]
    write(path, cases, {"sb3_contrib": sb3_contrib.__version__}, cells=CELLS)


if __name__ == "__main__":
    main(sys.argv[1])
