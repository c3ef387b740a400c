"""Records SAC updates of Stable-Baselines3, and log-probabilities of tanh(u), as golden numbers.

    pip install torch==2.9.1 stable-baselines3==2.9.2 gymnasium==1.2.3 mpmath==1.3.0
    python scripts/record_sac.py crates/brasa-sac/tests/data/sb3_update.json

The batch is made up (random observations, actions, rewards and ends) and so is the noise of the actor's draws; the
update itself is `stable_baselines3.SAC.train`. Three things differ from its defaults, so that the numbers are exact:

- `epsilon` of the squashed distribution is 0. It stands there to keep log(1 - tanh(u)^2) finite; Brasa writes the same
  term as 2 (log 2 - u - softplus(-2 u)), which is finite and needs none.
- The networks are float64, because 1 - tanh(u)^2 loses its digits in float32. Weights and inputs are float32 numbers.
- Noise stays within 1.2 standard deviations, so that even the naive term has its digits in float64.

Two cases have what its SAC has no setting for: layer normalization in the critics, as modules that `train` updates like any other, and a
weight of squared actions, which the values of the actor's own actions contain.
"""

import json
import sys

import gymnasium
import mpmath
import numpy as np
import stable_baselines3
import torch
from stable_baselines3 import SAC
from stable_baselines3.common import policies
from stable_baselines3.common.logger import configure
from stable_baselines3.common.type_aliases import ReplayBufferSamples
from stable_baselines3.common.vec_env import DummyVecEnv

ROWS, WIDTH, ACTIONS = 16, 5, 2
TAU = 0.05


class Nothing(gymnasium.Env):
    """Only its spaces count."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (WIDTH,), np.float32)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (ACTIONS,), np.float32)

    def reset(self, seed=None, options=None):
        return np.zeros(WIDTH, np.float32), {}

    def step(self, action):
        return np.zeros(WIDTH, np.float32), 0.0, False, False, {}


def numbers(array):
    array = np.asarray(array.detach().numpy() if isinstance(array, torch.Tensor) else array)
    return [float(x) for x in array.astype(np.float64).reshape(-1)]


def single(array):
    """A float64 tensor of float32 numbers."""
    return torch.as_tensor(np.asarray(array).astype(np.float32).astype(np.float64))


def weights(model):
    out = {}
    parts = {"actor": model.actor, "critic": model.critic, "target": model.critic_target}
    for part, module in parts.items():
        for name, value in module.state_dict().items():
            *names, kind = name.split(".")
            if part == "actor":
                layer = {"mu": "mean", "log_std": "log_std"}.get(names[0]) or f"hidden.{int(names[1]) // 2}"
            else:
                net = getattr(module, names[0])
                place, member = int(names[1]), names[0].removeprefix("qf")
                same = [i for i, layer in enumerate(net) if type(layer) is type(net[place])]
                norm = "norm." if isinstance(net[place], torch.nn.LayerNorm) else ""
                layer = f"{member}.{norm}{same.index(place)}"
            value = value.T if value.ndim == 2 else value  # ours is [inputs, outputs]
            out[f"{part}.{layer}.{kind}"] = {"shape": list(value.shape), "values": numbers(value.contiguous())}
    if model.log_ent_coef is not None:
        out["log_ent_coef"] = {"shape": [1], "values": numbers(model.log_ent_coef)}
    return out


def normalize(critic):
    """Puts a layer normalization behind each hidden linear layer, which SAC of Stable-Baselines3 cannot."""
    for i, net in enumerate(critic.q_networks):
        layers = []
        for layer in net:
            layers.append(layer)
            if isinstance(layer, torch.nn.Linear) and layer is not net[-1]:
                layers.append(torch.nn.LayerNorm(layer.out_features))
        setattr(critic, f"qf{i}", torch.nn.Sequential(*layers))
    critic.q_networks = [getattr(critic, f"qf{i}") for i in range(len(critic.q_networks))]


def penalize(critic, weight):
    """Subtracts the multiple of the mean squared action from the values of the actor's own actions, which `train` negates."""
    plain = critic.forward

    def forward(obs, actions):
        penalty = weight * actions.square().mean(1, keepdim=True) if actions.requires_grad else 0.0
        return tuple(value - penalty for value in plain(obs, actions))

    critic.forward = forward


def record(seed, ent_coef, calls=(1, 1, 1), log_std_bias=0.0, layer_norm=False, action_l2=0.0, **settings):
    """Runs `train` once per number of gradient steps in `calls`: one Adam step alone would show only signs."""
    rng = np.random.RandomState(seed)
    torch.manual_seed(seed)
    model = SAC(
        "MlpPolicy",
        DummyVecEnv([Nothing]),
        learning_rate=3e-3,
        buffer_size=ROWS,
        tau=TAU,
        ent_coef=ent_coef,
        policy_kwargs={"net_arch": [8, 6]},
        device="cpu",
        **settings,
    )
    model.set_logger(configure(None, []))
    model.actor.action_dist.epsilon = 0.0
    if layer_norm:
        normalize(model.critic)
        normalize(model.critic_target)
        model.critic.optimizer = torch.optim.Adam(model.critic.parameters(), lr=3e-3)
        # Found again when polyak averaging looks for them.
        model._create_aliases()
    if action_l2:
        penalize(model.critic, action_l2)
    with torch.no_grad():  # heads that differ visibly, target networks that differ from the critics
        scales = {model.actor.mu: 0.5, model.actor.log_std: 0.5, model.critic: 0.1, model.critic_target: 0.1}
        for module, scale in scales.items():
            for parameter in module.parameters():
                parameter.add_(torch.as_tensor(rng.normal(size=parameter.shape) * scale))
        model.actor.log_std.bias.add_(log_std_bias)
        for parameter in model.policy.parameters():
            parameter.copy_(single(parameter))
        if model.log_ent_coef is not None:
            model.log_ent_coef.copy_(single(model.log_ent_coef))
    before = weights(model)

    batch = {
        "obs": single(rng.normal(size=(ROWS, WIDTH))),
        "action": single(rng.uniform(-1.0, 1.0, size=(ROWS, ACTIONS))),
        "reward": single(rng.normal(size=(ROWS, 1))),
        "next_obs": single(rng.normal(size=(ROWS, WIDTH))),
        "terminated": single(rng.uniform(size=(ROWS, 1)) < 0.25),
    }
    assert 0 < batch["terminated"].sum() < ROWS
    samples = ReplayBufferSamples(*(batch[name] for name in ["obs", "action", "next_obs", "terminated", "reward"]))
    model.replay_buffer.sample = lambda *_, **__: samples

    # What `train` draws and computes on its way: two draws of the actor, two losses of the critics per step.
    noises, draws, losses = [], [], []

    def standard_normal(shape, dtype, device):
        noises.append(single(np.clip(rng.normal(size=tuple(shape)), -1.2, 1.2)))
        return noises[-1]

    action_log_prob, mse_loss = model.actor.action_log_prob, torch.nn.functional.mse_loss

    def recorded_log_prob(obs):
        draws.append((*action_log_prob(obs), model.actor.action_dist.gaussian_actions))
        return draws[-1][:2]

    def recorded_mse_loss(value, target):
        losses.append((value.detach(), target.detach()))
        return mse_loss(value, target)

    with torch.no_grad():
        features = model.actor.latent_pi(torch.cat([batch["obs"], batch["next_obs"]]))
        excess = model.actor.log_std(features) - 2.0
    assert excess.abs().min() > 1e-4  # else float32 may clamp other entries
    kept = torch.distributions.normal._standard_normal  # the name that `Normal.rsample` looks up
    torch.distributions.normal._standard_normal = standard_normal
    torch.nn.functional.mse_loss = recorded_mse_loss
    model.actor.action_log_prob = recorded_log_prob
    model._current_progress_remaining = 1.0
    logged = []
    for gradient_steps in calls:
        model.train(gradient_steps=gradient_steps, batch_size=ROWS)
        logged.append({k: float(v) for k, v in model.logger.name_to_value.items() if k.startswith("train/")})
    torch.distributions.normal._standard_normal = kept
    torch.nn.functional.mse_loss = mse_loss

    steps = []
    for i in range(sum(calls)):
        (action, log_prob, u), (_, next_log_prob, _) = draws[2 * i : 2 * i + 2]
        (first, y), (second, again) = losses[2 * i : 2 * i + 2]
        assert torch.equal(y, again)
        steps.append(
            {
                "noise_actor": numbers(noises[2 * i]),
                "noise_target": numbers(noises[2 * i + 1]),
                "u": numbers(u),
                "policy_action": numbers(action),
                "log_prob": numbers(log_prob),
                "next_log_prob": numbers(next_log_prob),
                "y": numbers(y),
                "q": [numbers(first), numbers(second)],
            }
        )
    assert len(noises) == len(draws) == len(losses) == 2 * sum(calls)
    return {
        "settings": {
            "learning_rate": 3e-3,
            "gamma": model.gamma,
            "tau": model.tau,
            "ent_coef": float(str(ent_coef).removeprefix("auto_").replace("auto", "1")),
            "learn_ent_coef": model.log_ent_coef is not None,
            "target_entropy": float(model.target_entropy),
            "target_update_interval": model.target_update_interval,
            "layer_norm": layer_norm,
            "action_l2": action_l2,
        },
        "calls": calls,
        "log_stds_above_2": int((excess > 0.0).sum()),
        "before": before,
        "batch": {name: numbers(value) for name, value in batch.items()},
        "steps": steps,
        "after": weights(model),
        "logged": logged,
    }


def log_prob_table():
    """The log density of tanh(u), u ~ N(mean, exp(log_std)), in one dimension, by its definition in 60 digits."""
    table = {"mean": [], "log_std": [], "u": [], "log_prob": []}
    with mpmath.workdps(60):
        for mean in [-1.5, 0.0, 0.25, 3.0]:
            for log_std in [-5.0, -1.0, 0.0, 0.5, 2.0]:
                for u in [-12.0, -9.5, -6.0, -3.0, -1.0, -0.125, 0.0, 0.001, 0.5, 2.0, 4.5, 8.0, 10.25, 12.0]:
                    std = mpmath.exp(log_std)
                    normal = -(((u - mean) / std) ** 2) / 2 - log_std - mpmath.log(2 * mpmath.pi) / 2
                    value = normal - mpmath.log(1 - mpmath.tanh(u) ** 2)
                    for key, number in zip(table, [mean, log_std, u, value]):
                        table[key].append(float(number))
    return table


def main(path):
    torch.set_default_dtype(torch.float64)
    policies.preprocess_obs = lambda obs, *_, **__: obs  # it would turn observations into float32
    cases = {
        "auto": record(1, "auto", log_std_bias=2.0),
        "auto_target": record(2, "auto_0.3", target_entropy=-1.0),
        "fixed": record(3, 0.2),
        "layer_norm": record(5, "auto", layer_norm=True),
        "action_l2": record(6, "auto_0.1", action_l2=0.7),
        "slow_target": record(4, "auto", calls=(3,), target_update_interval=2),
    }
    assert 0 < cases["auto"]["log_stds_above_2"] < 2 * ROWS * ACTIONS
    versions = {
        "torch": torch.__version__,
        "stable_baselines3": stable_baselines3.__version__,
        "numpy": np.__version__,
        "mpmath": mpmath.__version__,
    }
    out = {"versions": versions, "rows": ROWS, "width": WIDTH, "actions": ACTIONS, "cases": cases}
    out["log_prob"] = log_prob_table()
    with open(path, "w") as file:
        json.dump(out, file)


main(sys.argv[1])
