"""Updates of PPO and SAC in plain PyTorch: milliseconds per gradient step, with and without CUDA graphs.

    python benches/peers/torch_updates.py [--device cuda] [--task ppo|sac|sac-large] [--updates 500]

Prints one line of JSON per task and form. The work is that of Brasa's updates, on random numbers: PPO's gradient step of
`configs/cart-pole-ppo.toml` (256 rows, 4 observations, 2 actions, two layers of 64 for each of actor and critic, tanh, clipped gradients, Adam);
SAC's update of Pendulum-v1's size (100 rows, two layers of 64) and of `cargo run --package brasa-benches --example sac -- --task synthetic` (256 rows,
17 observations, 6 actions, two layers of 256): two critics, actor, temperature, Polyak averages. Sampling from a replay buffer is a gather of rows.
Without a GPU, graphs are skipped.
"""

import argparse
import json
import math
import time

import torch
from torch import nn


def mlp(sizes, activation):
    layers = []
    for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
        layers += [nn.Linear(a, b)] + ([activation()] if i + 2 < len(sizes) else [])
    return nn.Sequential(*layers)


class Ppo:
    def __init__(self, device, capturable):
        self.actor, self.critic = (mlp([4, 64, 64, n], nn.Tanh).to(device) for n in (2, 1))
        self.parameters = [*self.actor.parameters(), *self.critic.parameters()]
        self.optimizer = torch.optim.Adam(self.parameters, lr=1e-3, eps=1e-5, capturable=capturable)
        rows = 256
        self.obs = torch.randn(rows, 4, device=device)
        self.action = torch.randint(2, (rows,), device=device)
        self.log_prob, self.advantage, self.returns = (torch.randn(rows, device=device) for _ in range(3))

    def update(self):
        advantage = (self.advantage - self.advantage.mean()) / (self.advantage.std() + 1e-8)
        log_probs = torch.log_softmax(self.actor(self.obs), 1)
        log_prob = log_probs.gather(1, self.action[:, None]).squeeze(1)
        entropy = -(log_probs.exp() * log_probs).sum(1).mean()
        ratio = (log_prob - self.log_prob).exp()
        policy = -torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()
        value = (self.critic(self.obs).squeeze(1) - self.returns).square().mean()
        loss = policy + 0.5 * value - 0.0 * entropy
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(self.parameters, 0.5, foreach=True)
        self.optimizer.step()


class Sac:
    def __init__(self, device, capturable, obs, action, hidden, batch):
        self.n_actions, self.batch = action, batch
        self.actor = mlp([obs, hidden, hidden, 2 * action], nn.ReLU).to(device)
        self.critics, self.targets = ([mlp([obs + action, hidden, hidden, 1], nn.ReLU).to(device) for _ in range(2)] for _ in range(2))
        self.log_alpha = torch.zeros(1, device=device, requires_grad=True)
        adam = {"lr": 3e-4, "capturable": capturable}
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), **adam)
        self.critic_parameters = [p for critic in self.critics for p in critic.parameters()]
        self.target_parameters = [p for critic in self.targets for p in critic.parameters()]
        self.critic_optimizer = torch.optim.Adam(self.critic_parameters, **adam)
        self.alpha_optimizer = torch.optim.Adam([self.log_alpha], **adam)
        n = 10_000
        self.obs, self.next_obs = (torch.randn(n, obs, device=device) for _ in range(2))
        self.action = torch.rand(n, action, device=device) * 2 - 1
        self.reward, self.terminated = torch.randn(n, device=device), torch.zeros(n, device=device)

    def draw(self, obs):
        mean, log_std = self.actor(obs).chunk(2, 1)
        log_std = log_std.clamp(-20, 2)
        noise = torch.randn_like(mean)
        u = mean + log_std.exp() * noise
        correction = 2 * (math.log(2) - u - nn.functional.softplus(-2 * u))
        log_prob = (-0.5 * noise.square() - log_std - 0.5 * math.log(2 * math.pi) - correction).sum(1)
        return torch.tanh(u), log_prob

    def update(self):
        rows = torch.randint(self.obs.shape[0], (self.batch,), device=self.obs.device)
        obs, next_obs, action = self.obs[rows], self.next_obs[rows], self.action[rows]
        reward, terminated = self.reward[rows], self.terminated[rows]
        alpha = self.log_alpha.exp().detach()
        with torch.no_grad():
            next_action, next_log_prob = self.draw(next_obs)
            q = torch.min(*(target(torch.cat([next_obs, next_action], 1)).squeeze(1) for target in self.targets))
            goal = reward + 0.99 * (1 - terminated) * (q - alpha * next_log_prob)
        x = torch.cat([obs, action], 1)
        critic_loss = sum((critic(x).squeeze(1) - goal).square().mean() for critic in self.critics)
        self.critic_optimizer.zero_grad(set_to_none=True)
        critic_loss.backward()
        self.critic_optimizer.step()
        new_action, log_prob = self.draw(obs)
        q = torch.min(*(critic(torch.cat([obs, new_action], 1)).squeeze(1) for critic in self.critics))
        actor_loss = (alpha * log_prob - q).mean()
        self.actor_optimizer.zero_grad(set_to_none=True)
        actor_loss.backward(inputs=list(self.actor.parameters()))
        self.actor_optimizer.step()
        alpha_loss = -(self.log_alpha * (log_prob.detach() - self.n_actions)).mean()
        self.alpha_optimizer.zero_grad(set_to_none=True)
        alpha_loss.backward()
        self.alpha_optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(self.target_parameters, self.critic_parameters, 0.005)


TASKS = {
    "ppo": lambda device, capturable: Ppo(device, capturable),
    "sac": lambda device, capturable: Sac(device, capturable, 3, 1, 64, 100),
    "sac-large": lambda device, capturable: Sac(device, capturable, 17, 6, 256, 256),
}


def captured(work):
    """The update as a CUDA graph, after three warm-up calls on another stream, as PyTorch's documentation asks."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


def milliseconds(work, n, device):
    wait = torch.cuda.synchronize if device.startswith("cuda") else lambda: None
    for _ in range(20):
        work()
    wait()
    begin = time.perf_counter()
    for _ in range(n):
        work()
    wait()
    return 1000 * (time.perf_counter() - begin) / n


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--task", choices=TASKS, action="append")
    parser.add_argument("--updates", type=int, default=500)
    arguments = parser.parse_args()
    on_gpu = arguments.device.startswith("cuda")
    if not on_gpu:
        torch.set_num_threads(1)
    for task in arguments.task or TASKS:
        for form in ["eager", "graph"] if on_gpu else ["eager"]:
            torch.manual_seed(0)
            bench = TASKS[task](arguments.device, form == "graph")
            work = captured(bench.update) if form == "graph" else bench.update
            line = {"library": "pytorch", "task": task, "form": form, "ms_per_update": milliseconds(work, arguments.updates, arguments.device),
                    "updates": arguments.updates, "device": arguments.device, "tf32": torch.backends.cuda.matmul.allow_tf32,
                    "versions": {"torch": torch.__version__}}
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
