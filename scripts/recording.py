"""What recordings of on-policy updates of Stable-Baselines3 have in common: made-up rollouts, weights, and the file."""

import json

import gymnasium
import numpy as np
import stable_baselines3
import torch
from stable_baselines3.common.logger import configure

ROWS, STEPS, WIDTH = 2, 8, 5


class Nothing(gymnasium.Env):
    """Only its spaces count."""

    def __init__(self, action_space, observation_space=None):
        self.observation_space = observation_space or gymnasium.spaces.Box(-np.inf, np.inf, (WIDTH,), np.float32)
        self.action_space = action_space

    def nothing(self):
        return np.zeros(self.observation_space.shape, self.observation_space.dtype)

    def reset(self, seed=None, options=None):
        return self.nothing(), {}

    def step(self, action):
        return self.nothing(), 0.0, False, False, {}


def numbers(array):
    array = np.asarray(array.detach().numpy() if isinstance(array, torch.Tensor) else array)
    return [float(x) for x in array.astype(np.float64).reshape(-1)]


def array(value):
    """A weight as the tests read it: ours is [inputs, outputs]."""
    value = value.T if value.ndim == 2 else value
    return {"shape": list(value.shape), "values": numbers(value.contiguous())}


def weights(policy):
    """The weights of actor and critic, by our names."""
    names = {"mlp_extractor.policy_net": "actor.hidden", "mlp_extractor.value_net": "critic.hidden"}
    out = {}
    for name, value in policy.state_dict().items():
        for old, new in names.items():
            if name.startswith(old):
                _, _, index, kind = name.split(".")
                name = f"{new}.{int(index) // 2}.{kind}"
        out[name.replace("action_net", "actor_head").replace("value_net", "critic_head")] = array(value)
    return out


def learner(algorithm, policy, env, rng, seed, **settings):
    """An algorithm whose actions differ visibly: its first head is nearly 0."""
    torch.manual_seed(seed)
    envs = stable_baselines3.common.vec_env.DummyVecEnv([env] * ROWS)
    model = algorithm(policy, envs, n_steps=STEPS, device="cpu", **settings)
    model.set_logger(configure(None, []))
    with torch.no_grad():
        for parameter in model.policy.action_net.parameters():
            parameter.add_(torch.as_tensor(rng.normal(size=parameter.shape) * 0.3, dtype=torch.float32))
    model._current_progress_remaining = 1.0
    return model


def fill(model, rng, observe=None, act=None, drift=0.25, starts=1.0):
    """Fills the buffer of `model`. Log-probabilities drift, as if the policy had moved since: ratios leave the clip range in places."""
    observe = observe or (lambda: rng.normal(size=(ROWS, WIDTH)).astype(np.float32))
    act = act or (lambda obs, starts: (*model.policy(obs), {}))
    buffer, starts, flags = model.rollout_buffer, np.full(ROWS, starts), []
    buffer.reset()
    for _ in range(STEPS):
        obs = observe()
        with torch.no_grad():
            actions, values, log_probs, more = act(torch.as_tensor(obs), starts)
        if drift > 0.0:
            log_probs = log_probs + torch.as_tensor(rng.normal(size=ROWS) * drift, dtype=torch.float32)
        buffer.add(obs, actions.numpy().reshape(ROWS, -1), rng.normal(size=ROWS), starts, values, log_probs, **more)
        starts = (rng.uniform(size=ROWS) < 0.25).astype(np.float64)
        flags.append(starts)
    last_values = torch.as_tensor(rng.normal(size=ROWS), dtype=torch.float32)
    buffer.compute_returns_and_advantage(last_values, starts)
    return {
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


def evaluated(model):
    """What the policy computes of the rollout before the update."""
    buffer, space = model.rollout_buffer, model.action_space
    with torch.no_grad():
        actions = torch.as_tensor(buffer.actions.reshape(ROWS * STEPS, -1))
        obs = torch.as_tensor(buffer.observations.reshape(ROWS * STEPS, *model.observation_space.shape))
        values, log_probs, entropy = model.policy.evaluate_actions(obs, actions.flatten() if space.shape == () else actions)
    return {"value": numbers(values), "log_prob": numbers(log_probs), "entropy": numbers(entropy)}


def logged(model):
    return {key: float(value) for key, value in model.logger.name_to_value.items() if key.startswith("train/")}


def updated(model, settings, weights, before, rollout, **more):
    """The case of one update: `model.train()` and all that it changes."""
    model.train()
    of_update = {"before": before, "rollout": rollout, "after": weights(model.policy), "logged": logged(model)}
    return {"gamma": model.gamma, "gae_lambda": model.gae_lambda, "settings": settings, **more, **of_update}


def write(path, cases, versions=None, **more):
    versions = versions or {"stable_baselines3": stable_baselines3.__version__}
    versions = {"torch": torch.__version__, **versions, "numpy": np.__version__}
    with open(path, "w") as file:
        json.dump({"versions": versions, "n_rows": ROWS, "n_steps": STEPS, **more, "cases": cases}, file)
