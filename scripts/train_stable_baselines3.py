"""Trains Stable-Baselines3 with the settings of an experiment.

    train_stable_baselines3.py CONFIG [--seed N] [--steps N] [--episodes N] [--set KEY=VALUE ...] [--out FILE]

CONFIG is an experiment of Brasa with one of ppo, dqn, sac, td3: its settings are translated, so that both programs train with the same
ones. Settings without a translation end the script. With `[scenario.gymnasium]` the environment is Gymnasium's own, otherwise that of the
package `brasa` (docs/how-to/python.md). Prints one JSON document: the returns of greedy episodes after training, and the seconds of training.

Needs stable-baselines3 (PyPI); for masks sb3-contrib; gymnasium with the environment, or the package brasa.
"""

import argparse
import json
import time
import tomllib
from pathlib import Path

import gymnasium as gym
import numpy as np
import stable_baselines3 as sb3
import torch
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecNormalize

# The settings that the translation below knows; any other is an error.
KNOWN = {
    "train": {"total_env_steps", "n_envs", "normalize_obs", "scale_reward", "eval_interval"},
    "network": {"actor_hidden", "critic_hidden", "activation", "log_std_init", "orthogonal"},
    "actor": {"hidden", "std", "log_std_init"},
    "deterministic_actor": {"hidden"},
    "q_network": {"hidden"},
    "critics": {"hidden"},
    "ppo": {
        "n_steps", "batch_size", "n_epochs", "gamma", "gae_lambda", "learning_rate", "ent_coef", "clip_range", "max_grad_norm",
        "vf_coef",
    },
    "dqn": {"learning_rate", "gamma", "double", "target_update_interval", "epsilon", "exploration_fraction"},
    "sac": {"learning_rate", "gamma", "tau"},
    "td3": {"learning_rate", "gamma", "exploration_noise"},
    "off_policy": {"learning_starts", "train_freq", "updates_per_step", "batch_size", "replay"},
}
# The default of `train.eval_seed`.
EVAL_SEED = 1_000_003
ACTIVATIONS = {"tanh": torch.nn.Tanh, "relu": torch.nn.ReLU, "elu": torch.nn.ELU}


def schedule(value):
    """A number, or one that falls linearly to the end of training."""
    if not isinstance(value, dict):
        return value
    first, last = value["linear"]["from"], value["linear"]["to"]
    return lambda remaining: last + (first - last) * remaining


def check(config):
    for name, settings in config.items():
        if name == "scenario":
            continue
        unknown = set(settings) - KNOWN.get(name, set())
        if unknown:
            raise SystemExit(f"[{name}]: no translation for {sorted(unknown)}")


def network_of_ppo(network):
    """The policy's arguments; Brasa's defaults are those of Stable-Baselines3."""
    arguments = {}
    if "actor_hidden" in network or "critic_hidden" in network:
        arguments["net_arch"] = dict(pi=network.get("actor_hidden", [64, 64]), vf=network.get("critic_hidden", [64, 64]))
    if "activation" in network:
        arguments["activation_fn"] = ACTIVATIONS[network["activation"]]
    if "log_std_init" in network:
        arguments["log_std_init"] = network["log_std_init"]
    if "orthogonal" in network:
        arguments["ortho_init"] = network["orthogonal"]
    return arguments


def model_of(config, env, seed):
    common = dict(seed=seed, device="cpu")
    if "ppo" in config:
        settings = dict(config["ppo"])
        for name in ("learning_rate", "clip_range"):
            if name in settings:
                settings[name] = schedule(settings[name])
        algorithm = sb3.PPO
        if env.has_attr("action_masks"):
            from sb3_contrib import MaskablePPO as algorithm
        return algorithm("MlpPolicy", env, policy_kwargs=network_of_ppo(config.get("network", {})), **settings, **common)
    off = config["off_policy"]
    train_freq = off["train_freq"]
    common |= dict(
        learning_starts=off["learning_starts"],
        train_freq=train_freq,
        gradient_steps=round(train_freq * off["updates_per_step"]),
        batch_size=off["batch_size"],
        buffer_size=off["replay"]["capacity"],
    )
    if "dqn" in config:
        settings = dict(config["dqn"])
        if settings.pop("double", True):
            raise SystemExit("[dqn]: Stable-Baselines3 has no double Q-learning")
        epsilon = settings.pop("epsilon")["linear"]
        settings |= dict(exploration_initial_eps=epsilon["from"], exploration_final_eps=epsilon["to"])
        return sb3.DQN("MlpPolicy", env, policy_kwargs=dict(net_arch=config["q_network"]["hidden"]), **settings, **common)
    if "sac" in config:
        actor = config["actor"]
        arguments = dict(net_arch=dict(pi=actor["hidden"], qf=config["critics"]["hidden"]))
        use_sde = actor.get("std") == "state-dependent"
        if "log_std_init" in actor:
            if not use_sde:
                raise SystemExit("[actor]: Stable-Baselines3 ignores log_std_init without state-dependent exploration")
            arguments["log_std_init"] = actor["log_std_init"]
        return sb3.SAC("MlpPolicy", env, policy_kwargs=arguments, use_sde=use_sde, **config["sac"], **common)
    settings = dict(config["td3"])
    noise = settings.pop("exploration_noise")
    n = env.action_space.shape[0]
    arguments = dict(net_arch=dict(pi=config["deterministic_actor"]["hidden"], qf=config["critics"]["hidden"]))
    noise = NormalActionNoise(mean=np.zeros(n), sigma=noise * np.ones(n))
    return sb3.TD3("MlpPolicy", env, policy_kwargs=arguments, action_noise=noise, **settings, **common)


def of_gymnasium(config, args):
    """Environments of Gymnasium for training, and one for evaluation."""
    scenario = config["scenario"]["gymnasium"]

    def make():
        return Monitor(gym.make(scenario["id"], **scenario.get("kwargs", {})))

    n_envs = config["train"]["n_envs"]
    evaluation = DummyVecEnv([make])
    evaluation.seed(10_000 + args.seed)
    return (DummyVecEnv if n_envs == 1 else SubprocVecEnv)([make] * n_envs), evaluation


def of_brasa(config, args):
    """Environments of the package for training, and as many for evaluation as there are episodes."""
    import brasa
    from brasa.stable_baselines3 import Sb3VecEnv

    ((name, settings),) = config["scenario"].items()
    env = Sb3VecEnv(brasa.make_vec(name, config["train"]["n_envs"], settings=settings, copy=False))
    env.seed(args.seed)
    evaluation = Sb3VecEnv(brasa.make_vec(name, args.episodes, settings=settings, split="evaluation", copy=False))
    evaluation.seed(EVAL_SEED)
    return env, evaluation


def play(model, env, n_episodes):
    """The returns of the first `n_episodes` greedy episodes: with one environment one after the other, with several the first of each."""
    returns, obs = [], env.reset()
    masked = env.has_attr("action_masks")
    running = np.ones(env.num_envs, dtype=bool)
    sums = np.zeros(env.num_envs)
    while len(returns) < n_episodes:
        masks = {"action_masks": np.stack(env.env_method("action_masks"))} if masked else {}
        actions, _ = model.predict(obs, deterministic=True, **masks)
        obs, rewards, ended, _ = env.step(actions)
        sums += rewards
        for i in np.flatnonzero(ended):
            if running[i]:
                returns.append(sums[i])
                running[i] = env.num_envs == 1
            sums[i] = 0
    return returns


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("config", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--episodes", type=int, default=50)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    config = tomllib.loads(args.config.read_text())
    for change in args.set:
        path, value = change.split("=", 1)
        *tables, name = path.split(".")
        table = config
        for part in tables:
            table = table.setdefault(part, {})
        table[name] = tomllib.loads(f"value = {value}")["value"]
    check(config)
    train = config["train"]

    gamma = next(iter(config[name] for name in ("ppo", "dqn", "sac", "td3") if name in config)).get("gamma", 0.99)
    make = of_gymnasium if "gymnasium" in config["scenario"] else of_brasa
    env, evaluation = make(config, args)
    normalize, scale = train.get("normalize_obs", False), train.get("scale_reward", False)
    if normalize or scale:
        env = VecNormalize(env, norm_obs=normalize, norm_reward=scale, gamma=gamma)
    model = model_of(config, env, args.seed)
    begin = time.perf_counter()
    model.learn(args.steps or train["total_env_steps"])
    seconds = time.perf_counter() - begin
    if normalize:
        evaluation = VecNormalize(evaluation, training=False, norm_obs=True, norm_reward=False)
        evaluation.obs_rms = env.obs_rms
    returns = play(model, evaluation, args.episodes)
    result = {
        "config": str(args.config),
        "seed": args.seed,
        "steps": model.num_timesteps,
        "seconds": round(seconds, 1),
        "return": float(np.mean(returns)),
        "return_std": float(np.std(returns)),
        "versions": {"stable-baselines3": sb3.__version__, "gymnasium": gym.__version__, "torch": torch.__version__},
    }
    text = json.dumps(result)
    print(text)
    if args.out:
        args.out.write_text(text + "\n")
    env.close()


if __name__ == "__main__":
    main()
