"""Compares imported models of Stable-Baselines3 with Stable-Baselines3 itself, for a folder of models such as DLR-RM/rl-trained-agents.

    cargo build -p brasa-cli && cargo build -p brasa-export --example act
    check_rl_zoo.py FOLDER [--brasa target/debug/brasa] [--act target/debug/examples/act]

Needs stable-baselines3, sb3-contrib and gymnasium (PyPI). `brasa import` converts each FOLDER/**/*.zip, and `act` computes the actions of the
result for random observations. The other side is the policy class of Stable-Baselines3 with the tensors of the file, built from the spaces
that `data` states: models that old versions of Gym and Python saved cannot be loaded whole. Prints a line for each model that does not agree, then
counts by algorithm; exit code 1 if one differs. A model in a file that is no archive (Git LFS) is left out.
"""

import argparse
import base64
import io
import json
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from pathlib import Path

import cloudpickle
import numpy as np
import torch
from gymnasium import spaces
from sb3_contrib.ars.policies import ARSLinearPolicy, ARSPolicy
from sb3_contrib.qrdqn.policies import QRDQNPolicy
from sb3_contrib.tqc.policies import MultiInputPolicy as TQCMultiInput
from sb3_contrib.tqc.policies import TQCPolicy
from stable_baselines3.common.policies import ActorCriticPolicy, MultiInputActorCriticPolicy
from stable_baselines3.dqn.policies import DQNPolicy
from stable_baselines3.sac.policies import MultiInputPolicy as SACMultiInput
from stable_baselines3.sac.policies import SACPolicy
from stable_baselines3.td3.policies import TD3Policy

N_OBS = 64
TOLERANCE = 5e-5


def numbers(text):
    return [float(part) for part in str(text).replace("[", " ").replace("]", " ").replace("(", " ").replace(")", " ").replace(",", " ").split()]


def space_of(data):
    """A space of Gymnasium from its texts; versions of Gym differ in what is a text."""
    kind = data[":type:"].rstrip("'>").rsplit(".", 1)[-1]
    if kind == "Box":
        shape = tuple(map(int, numbers(data.get("shape", data.get("_shape")))))
        low, high = (np.array(numbers(data[end]), np.float32) for end in ("low", "high"))
        if "..." in str(data["low"]):
            low, high = np.full(shape, -np.inf, np.float32), np.full(shape, np.inf, np.float32)
        return spaces.Box(low.reshape(shape), high.reshape(shape), shape, np.float32)
    if kind == "Discrete":
        return spaces.Discrete(int(data["n"]))
    if kind == "Dict":
        parts = data["spaces"].split("Box(")
        names = [part.rsplit("'", 2)[-2] for part in parts[:-1]]
        sizes = [int(part.split("(")[1].split(",")[0]) for part in parts[1:]]
        return spaces.Dict({name: spaces.Box(-np.inf, np.inf, (n,), np.float32) for name, n in zip(names, sizes)})
    raise ValueError(f"a space {kind}")


def policy_of(path):
    """The policy of Stable-Baselines3, and its observation space."""
    with zipfile.ZipFile(path) as archive:
        data = json.loads(archive.read("data"))
        tensors = torch.load(io.BytesIO(archive.read("policy.pth")), map_location="cpu", weights_only=True)
    obs, action = space_of(data["observation_space"]), space_of(data["action_space"])
    settings = data["policy_kwargs"]
    if ":serialized:" in settings:
        settings = cloudpickle.loads(base64.b64decode(settings[":serialized:"]))
    settings = {key: value for key, value in settings.items() if key not in ("device", "optimizer_class", "optimizer_kwargs")}
    if isinstance(settings.get("net_arch"), list) and settings["net_arch"] and isinstance(settings["net_arch"][0], dict):
        settings["net_arch"] = settings["net_arch"][0]
    schedule = lambda _: 0.0
    is_dict = isinstance(obs, spaces.Dict)
    if "action_net.weight" in tensors and "value_net.weight" in tensors:
        of = MultiInputActorCriticPolicy if is_dict else ActorCriticPolicy
        settings.setdefault("use_sde", bool(data["use_sde"]))
        policy = of(obs, action, schedule, **settings)
    elif "action_net.weight" in tensors:
        policy = ARSLinearPolicy(obs, action, **settings)
        tensors = {name.replace("action_net.", "action_net.0."): value for name, value in tensors.items()}
    elif "action_net.0.weight" in tensors:
        policy = ARSPolicy(obs, action, **settings)
    elif any(name.startswith("q_net.") for name in tensors):
        policy = DQNPolicy(obs, action, schedule, **settings)
    elif any(name.startswith("quantile_net.") for name in tensors):
        policy = QRDQNPolicy(obs, action, schedule, **settings)
    elif "actor.log_std" in tensors or "actor.log_std.weight" in tensors:
        is_tqc = any("quantile" in name or "critic.q_networks" in name for name in tensors)
        of = (TQCMultiInput if is_dict else TQCPolicy) if is_tqc else (SACMultiInput if is_dict else SACPolicy)
        settings.setdefault("use_sde", bool(data["use_sde"]))
        policy = of(obs, action, schedule, **settings)
    else:
        policy = TD3Policy(obs, action, schedule, **settings)
    own = {name: value for name, value in tensors.items() if not name.startswith(("critic", "actor_target"))}
    missing, unexpected = policy.load_state_dict(own, strict=False)
    missing = [name for name in missing if not name.startswith(("critic", "actor_target", "critic_target"))]
    # The features of versions before 1.8 have no tensors either.
    if missing or unexpected:
        raise ValueError(f"tensors do not fit: {missing[:3]} {unexpected[:3]}")
    policy.set_training_mode(False)
    return policy, obs


def observations(space, rng):
    """Observations as the policy takes them, and flat."""
    if isinstance(space, spaces.Dict):
        parts = {name: rng.normal(0, 1.5, (N_OBS, *part.shape)).astype(np.float32) for name, part in space.spaces.items()}
        return parts, np.concatenate([part.reshape(N_OBS, -1) for part in parts.values()], axis=1)
    obs = rng.normal(0, 1.5, (N_OBS, *space.shape)).astype(np.float32)
    return obs, obs.reshape(N_OBS, -1)


def check(path, arguments, folder):
    """Largest difference of an action, relative to its magnitude above 1."""
    policy, space = policy_of(path)
    obs, flat = observations(space, np.random.default_rng(0))
    with torch.no_grad():
        expected, _ = policy.predict(obs, deterministic=True)
    model = folder / "model.safetensors"
    if arguments.brasa:
        command = [arguments.brasa, "import", path, "--out", model]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise ValueError(done.stderr.strip())
    else:
        model = path
    done = subprocess.run([arguments.act, model], input=json.dumps(flat.ravel().tolist()), capture_output=True, text=True)
    if done.returncode:
        raise ValueError(done.stderr.strip())
    got = np.array(json.loads(done.stdout), dtype=np.float64).reshape(N_OBS, -1)
    expected = np.asarray(expected, dtype=np.float64).reshape(N_OBS, -1)
    return float(np.max(np.abs(got - expected) / np.maximum(1.0, np.abs(expected))))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--brasa", type=Path)
    parser.add_argument("--act", type=Path, default=Path("target/debug/examples/act"))
    arguments = parser.parse_args()
    agree, wrong, largest = Counter(), Counter(), 0.0
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted(arguments.folder.rglob("*.zip")):
            if not zipfile.is_zipfile(path):
                continue
            name = str(path.relative_to(arguments.folder))
            algorithm = name.split("/")[0]
            try:
                gap = check(path, arguments, Path(folder))
            except Exception as error:
                wrong[algorithm] += 1
                print(f"{name}: {type(error).__name__}: {error}")
                continue
            largest = max(largest, gap)
            if gap <= TOLERANCE:
                agree[algorithm] += 1
            else:
                wrong[algorithm] += 1
                print(f"{name}: actions differ by up to {gap:.3g}")
    for algorithm in sorted(agree | wrong):
        print(f"{algorithm}: {agree[algorithm]} of {agree[algorithm] + wrong[algorithm]} agree")
    print(f"{agree.total()} of {agree.total() + wrong.total()} models agree; largest difference {largest:.2g}")
    return 1 if wrong else 0


sys.exit(main())
