"""What the programs that time Stable-Baselines3 or steps of environments have in common: arguments, the evaluation, and the line of JSON."""

import argparse
import importlib
import importlib.metadata
import json
import platform
import time


def arguments(description, steps, more=lambda parser: None):
    """The arguments of the command, after PyTorch has its threads."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=steps)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1, help="threads of PyTorch")
    more(parser)
    found = parser.parse_args()
    import torch

    torch.set_num_threads(found.threads)
    return found


def evaluated(model, environments):
    """The mean return of 20 episodes without exploration."""
    from stable_baselines3.common.evaluation import evaluate_policy

    returns, _ = evaluate_policy(model, environments, n_eval_episodes=20, deterministic=True, return_episode_rewards=True)
    return {"eval_return": sum(returns) / len(returns), "eval_episodes": len(returns)}


def result(task, model, seconds, found, library="stable_baselines3", **more):
    """Prints the line."""
    import torch

    packages = [library, "torch", "gymnasium", "numpy"]
    versions = {package: importlib.import_module(package).__version__ for package in packages}
    line = {
        "library": library.replace("_", "-"),
        "task": task,
        "env_steps": model.num_timesteps,
        "updates": model._n_updates,
        "seconds": seconds,
        "env_steps_per_second": model.num_timesteps / seconds,
        "n_envs": model.n_envs,
        "seed": found.seed,
        "threads": torch.get_num_threads(),
        "device": "cpu",
        "versions": {**versions, "python": platform.python_version()},
    }
    print(json.dumps({**line, **more}))


def cart_pole(description, algorithm, task, steps, n_envs, settings, more=lambda parser: None):
    """Times a whole training on CartPole-v1: from making the environments to the last update."""
    found = arguments(description, steps, more)
    import stable_baselines3
    from stable_baselines3.common.env_util import make_vec_env

    begin = time.perf_counter()
    environments = make_vec_env("CartPole-v1", n_envs=n_envs, seed=found.seed)
    settings = settings(found) if callable(settings) else settings
    model = getattr(stable_baselines3, algorithm)(
        "MlpPolicy", environments, seed=found.seed, device="cpu", verbose=0, **settings
    )
    model.learn(total_timesteps=found.steps)
    seconds = time.perf_counter() - begin
    evaluation = make_vec_env("CartPole-v1", n_envs=20, seed=1000 + found.seed)
    result(task, model, seconds, found, **evaluated(model, evaluation))


def steps_per_second(step, seconds):
    """The rate of `step`, which is called with 0 to 63 in turns and returns the number of environment steps that it took."""
    calls, steps, begin = 0, 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        steps += step(calls % 64)
        calls += 1
    return steps / (time.perf_counter() - begin)


def cart_poles(description, library, make):
    """Times steps of CartPole with random actions. `make` gets the number of environments, a seed and a generator, and returns the step."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--n-envs", type=int, default=1024)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--seed", type=int, default=0)
    found = parser.parse_args()
    import numpy

    step = make(found.n_envs, found.seed, numpy.random.default_rng(found.seed))
    line = {
        "library": library,
        "task": "CartPole-v1",
        "n_envs": found.n_envs,
        "env_steps_per_second": round(steps_per_second(step, found.seconds)),
        "versions": {
            library: importlib.metadata.version(library),
            "numpy": numpy.__version__,
            "python": platform.python_version(),
        },
    }
    print(json.dumps(line))
