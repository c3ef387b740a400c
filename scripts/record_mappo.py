"""Records one update of MAPPO by TorchRL, its advantages and its losses, as golden numbers.

    pip install torch==2.15.0 torchrl==0.14.1
    python scripts/record_mappo.py crates/brasa-ppo/tests/data/torchrl_mappo_update.json

Actor and critic are TorchRL's `MultiAgentMLP`, one for all agents, or one for each; the critic is centralized. It computes the value of an agent from the
observations of the team in the order in which Brasa gives them: from the next agent on, the agent itself last. The rollout is made up, so that
every branch is met: random observations, rewards and ends, and an agent that is masked after it has left. The update is `ClipPPOLoss` on the whole
rollout, as BenchMARL calls it. Normalized values are TorchRL's `PopArtValueNorm`, used as Yu et al. 2022 do: the critic has normalized values, which
are denormalized before advantages are estimated, and the moments are updated before the loss.
"""

import itertools
import json
import sys

import numpy as np
import torch
import torchrl
from recording import numbers
from tensordict import TensorDict
from tensordict.nn import TensorDictModule
from torchrl.modules import MultiAgentMLP, PopArtValueNorm, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss, ValueEstimators
from torchrl.objectives.value.functional import generalized_advantage_estimate

ENVS, AGENTS, STEPS, WIDTH, ACTIONS = 4, 3, 6, 4, 5
OBS, ACTION, LOG_PROB = ("agents", "observation"), ("agents", "action"), ("agents", "sample_log_prob")
GAMMA, GAE_LAMBDA = 0.95, 0.9


def mlp(outputs, centralized, shares):
    return MultiAgentMLP(
        n_agent_inputs=WIDTH,
        n_agent_outputs=outputs,
        n_agents=AGENTS,
        centralized=centralized,
        share_params=shares,
        depth=2,
        num_cells=[8, 6],
        activation_class=torch.nn.Tanh,
    )


class Central(torch.nn.Module):
    """The value of every agent, by its centralized critic on the team in the order of this agent."""

    def __init__(self, shares):
        super().__init__()
        self.net = mlp(1, True, shares)

    def forward(self, obs):
        teams = [torch.roll(obs, -(agent + 1), dims=-2) for agent in range(AGENTS)]
        return torch.stack([self.net(team)[..., agent, :] for agent, team in enumerate(teams)], -2)


def joint(obs):
    """Rows of the team in the order of each agent."""
    teams = [np.roll(obs, -(agent + 1), axis=-2) for agent in range(AGENTS)]
    return np.stack([team.reshape(*team.shape[:-2], -1) for team in teams], -2)


def weights(loss, shares):
    out = {}
    agents = {"": lambda value: value}
    if not shares:
        agents = {f"networks.{agent}.": lambda value, agent=agent: value[agent] for agent in range(AGENTS)}
    for part, head, params in (
        ("actor", "actor_head", loss.actor_network_params),
        ("critic", "critic_head", loss.critic_network_params),
    ):
        values = {".".join(key): value for key, value in params.items(True, True)}
        layers = sorted({name.rsplit(".", 1)[0] for name in values})
        for index, layer in enumerate(layers):
            place = head if index == len(layers) - 1 else f"{part}.hidden.{index}"
            for kind, (agent, own) in itertools.product(("weight", "bias"), agents.items()):
                value = own(values[f"{layer}.{kind}"].detach())
                value = value.T if value.ndim == 2 else value  # ours is [inputs, outputs]
                out[f"{agent}{place}.{kind}"] = {"shape": list(value.shape), "values": numbers(value.contiguous())}
    return out


def record(
    seed,
    *,
    n_epochs,
    learning_rate,
    ent_coef,
    vf_coef,
    max_grad_norm,
    clip_range_vf=None,
    normalizes=False,
    shares=True,
):
    rng = np.random.RandomState(seed)
    torch.manual_seed(seed)
    actor = ProbabilisticActor(
        TensorDictModule(mlp(ACTIONS, False, shares), in_keys=[OBS], out_keys=[("agents", "logits")]),
        in_keys=[("agents", "logits")],
        out_keys=[ACTION],
        distribution_class=torch.distributions.Categorical,
        return_log_prob=True,
        log_prob_key=LOG_PROB,
    )
    critic = ValueOperator(Central(shares), in_keys=[OBS], out_keys=[("agents", "state_value")])
    loss = ClipPPOLoss(
        actor,
        critic,
        clip_epsilon=0.2,
        entropy_coeff=ent_coef,
        critic_coeff=vf_coef,
        loss_critic_type="l2",
        normalize_advantage=False,
        clip_value=clip_range_vf,
    )
    loss.set_keys(
        reward=("agents", "reward"),
        action=ACTION,
        done=("agents", "done"),
        terminated=("agents", "terminated"),
        value=("agents", "state_value"),
        sample_log_prob=LOG_PROB,
    )
    loss.make_value_estimator(ValueEstimators.GAE, gamma=GAMMA, lmbda=GAE_LAMBDA, vectorized=False)
    before = weights(loss, shares)

    tensor = lambda array: torch.as_tensor(np.asarray(array), dtype=torch.float32)
    obs = rng.normal(size=(ENVS, STEPS + 1, AGENTS, WIDTH)).astype(np.float32)
    reward = rng.normal(size=(ENVS, STEPS, AGENTS)).astype(np.float32)
    ended = rng.uniform(size=(ENVS, STEPS)) < 0.25
    # The second agent of the first team has left: it observes 0, and has no reward until the episode ends.
    ended[0] = [False] * (STEPS - 1) + [True]
    obs[0, 2:STEPS, 1], reward[0, 2:, 1] = 0.0, 0.0
    flags = torch.as_tensor(ended)[..., None, None].expand(-1, -1, AGENTS, 1)
    data = TensorDict({OBS: tensor(obs[:, :STEPS]), ("next", *OBS): tensor(obs[:, 1:])}, [ENVS, STEPS])
    with torch.no_grad():
        data = actor(data)
        # Of an older policy.
        noise = tensor(rng.normal(size=(ENVS, STEPS, AGENTS)) * 0.25)
        data[LOG_PROB] = data[LOG_PROB] + noise
    data.update({("next", "agents", "reward"): tensor(reward)[..., None]})
    for name in ("done", "terminated"):
        data.update({("next", "agents", name): flags})
    estimator = loss.value_estimator
    with torch.no_grad():
        data = estimator(data, params=loss.critic_network_params, target_params=loss.target_critic_network_params)
        distribution = actor.get_dist(data)
        last = data["next"].select("agents")[:, -1]
        last_value = critic(last)[("agents", "state_value")]
        raw = data[("agents", "state_value")]
        if normalizes:
            norm = PopArtValueNorm(shape=1)
            for _ in range(3):
                norm.update(tensor(rng.normal(-2, 3, size=(40, 1))))
            earlier = [norm.running_mean, norm.running_mean_sq, norm.debiasing_term]
            earlier = [float(number) for number in torch.cat([number.reshape(1) for number in earlier])]
            value = norm.denormalize(raw)
            next_value = norm.denormalize(critic(data["next"])[("agents", "state_value")])
            # Time is the last but one dimension there.
            by_time = lambda array: array.transpose(1, 2)
            advantage, target = generalized_advantage_estimate(
                GAMMA,
                GAE_LAMBDA,
                *map(by_time, [value, next_value, tensor(reward)[..., None], flags, flags]),
            )
            data["advantage"], target = by_time(advantage), by_time(target)
            norm.update(target)
            data["value_target"], data[("agents", "state_value")] = norm.normalize(target), norm.normalize(value)

    # Steps first, then environments with their agents, as rows are pushed.
    rows = lambda array: numbers(torch.as_tensor(np.asarray(array)).transpose(0, 1).contiguous())
    rollout = {
        "obs": rows(joint(obs[:, :STEPS])),
        "action": rows(data[ACTION]),
        "log_prob": rows(data[LOG_PROB]),
        "value": rows(raw.detach()),
        "reward": rows(reward),
        "terminated": rows(flags),
        "last_value": numbers(last_value.detach()),
    }
    # By row, as a rollout has them.
    of_rows = lambda array: numbers(torch.as_tensor(np.asarray(array)).reshape(ENVS, STEPS, -1).transpose(0, 1).contiguous())
    expected = {
        "advantage": of_rows(data["advantage"]),
        "target": of_rows(target if normalizes else data["value_target"]),
        "evaluated": {
            "value": of_rows(raw),
            "log_prob": of_rows(distribution.log_prob(data[ACTION])),
            "entropy": of_rows(distribution.entropy()),
        },
    }

    optimizer = torch.optim.Adam(loss.parameters(), lr=learning_rate, eps=1e-5)
    reports = []
    for _ in range(n_epochs):
        out = loss(data)
        total = out["loss_objective"] + out["loss_entropy"] + out["loss_critic"]
        optimizer.zero_grad()
        total.backward()
        torch.nn.utils.clip_grad_norm_(loss.parameters(), max_grad_norm)
        optimizer.step()
        reports.append([out["loss_objective"].item(), out["loss_critic"].item() / vf_coef, -out["entropy"].item()])
    assert clip_range_vf is None or out["value_clip_fraction"] > 0.5  # values have left the range
    policy, value, entropy = np.mean(reports, axis=0)
    settings = {"n_epochs": n_epochs, "learning_rate": learning_rate, "ent_coef": ent_coef, "vf_coef": vf_coef}
    settings |= {"max_grad_norm": max_grad_norm, "normalize_advantage": False, "clip_range_vf": clip_range_vf, "vf_loss": "larger"}
    if normalizes:
        settings["earlier_moments"] = earlier
    return {
        "gamma": GAMMA,
        "gae_lambda": GAE_LAMBDA,
        "settings": settings,
        "before": before,
        "rollout": rollout | expected,
        "after": weights(loss, shares),
        "logged": {"train/policy_gradient_loss": policy, "train/value_loss": value, "train/entropy_loss": entropy},
        "logs_other_metrics": True,
    }


def main(path):
    cases = {
        "one_pass": record(1, n_epochs=1, learning_rate=3e-3, ent_coef=0.01, vf_coef=0.5, max_grad_norm=100.0),
        "passes": record(2, n_epochs=4, learning_rate=3e-3, ent_coef=0.01, vf_coef=1.0, max_grad_norm=0.5),
        "clipped_values": record(
            3, n_epochs=6, learning_rate=1e-2, ent_coef=0.0, vf_coef=0.5, max_grad_norm=0.5, clip_range_vf=0.01
        ),
        "normalized_values": record(
            4, n_epochs=3, learning_rate=3e-3, ent_coef=0.01, vf_coef=1.0, max_grad_norm=10.0, normalizes=True
        ),
        "normalized_clipped_values": record(
            5, n_epochs=6, learning_rate=1e-2, ent_coef=0.0, vf_coef=1.0, max_grad_norm=0.5, clip_range_vf=0.01, normalizes=True
        ),
    }
    separate = {
        "one_pass": record(
            6, n_epochs=1, learning_rate=3e-3, ent_coef=0.01, vf_coef=0.5, max_grad_norm=100.0, shares=False
        ),
        "passes": record(7, n_epochs=4, learning_rate=3e-3, ent_coef=0.01, vf_coef=1.0, max_grad_norm=0.5, shares=False),
    }
    cases |= {f"separate_{name}": case for name, case in separate.items()}
    versions = {"torch": torch.__version__, "torchrl": torchrl.__version__, "numpy": np.__version__}
    with open(path, "w") as file:
        json.dump({"versions": versions, "n_rows": ENVS * AGENTS, "n_steps": STEPS, "cases": cases}, file)


if __name__ == "__main__":
    main(sys.argv[1])
