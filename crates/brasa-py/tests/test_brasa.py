"""The package as Gymnasium sees it: `pytest crates/brasa-py/tests`, with the wheel installed."""

import json
import subprocess
import threading
import time

import brasa
import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from common import SCENARIOS, legal, make, make_vec, trained


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_one_environment_is_a_batch_of_one(scenario):
    env, envs = make(scenario), make_vec(scenario, 1)
    env.action_space.seed(1)
    rng = np.random.default_rng(1)
    obs, info = env.reset(seed=5)
    several, infos = envs.reset(seed=5)
    for _ in range(300):
        np.testing.assert_array_equal(obs, several[0])
        action = legal(env.action_space, info, rng)
        obs, reward, terminated, truncated, info = env.step(action)
        several, rewards, terminations, truncations, infos = envs.step(np.asarray(action)[np.newaxis])
        assert (reward, terminated, truncated) == (rewards[0], terminations[0], truncations[0])
        assert all(info[name] == infos[name][0] for name in env.info_names)
        if terminated or truncated:
            np.testing.assert_array_equal(obs, infos["final_obs"][0])
            obs, info = env.reset()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_both_modes_of_autoreset_give_the_same_episodes(scenario):
    """Actions depend on observations alone, so that the episodes of an environment do not depend on when it is reset."""
    n, steps = 3, 400

    def episodes(mode):
        envs = make_vec(scenario, n, autoreset_mode=mode)
        weights = np.random.default_rng(0).normal(size=100_000)
        obs, info = envs.reset(seed=3)
        lists, current = [[] for _ in range(n)], [[] for _ in range(n)]
        fresh = np.zeros(n, dtype=bool)
        for _ in range(steps):
            actions = []
            for i in range(n):
                key = abs(int(1e6 * float(obs[i].ravel() @ weights[: obs[i].size]))) % 2**31
                own = {name: value[i] for name, value in info.items() if name == "action_mask"}
                space = envs.single_action_space
                space.seed(key)
                actions.append(legal(space, own, np.random.default_rng(key)))
            obs, reward, terminated, truncated, info = envs.step(np.array(actions))
            for i in range(n):
                if fresh[i] and mode == AutoresetMode.NEXT_STEP:
                    assert reward[i] == 0 and not terminated[i] and not truncated[i]
                    fresh[i] = False
                    continue
                current[i].append(float(reward[i]))
                if terminated[i] or truncated[i]:
                    last = info["final_obs"][i] if mode == AutoresetMode.SAME_STEP else obs[i]
                    lists[i].append((current[i], last.copy()))
                    current[i], fresh[i] = [], True
        return lists

    same, following = episodes(AutoresetMode.SAME_STEP), episodes(AutoresetMode.NEXT_STEP)
    for own, other in zip(same, following):
        # The other mode needs a step more per episode.
        for (rewards, last), (expected, expected_last) in zip(own, other):
            assert rewards == expected
            np.testing.assert_array_equal(last, expected_last)


def test_seeds_repeat_and_differ():
    def start(seed):
        envs = make_vec("cart-pole", 4)
        return envs.reset(seed=seed)[0]

    np.testing.assert_array_equal(start(1), start(1))
    assert not np.array_equal(start(1), start(2))
    envs = make_vec("cart-pole", 4)
    first = envs.reset(seed=1)[0]
    assert not np.array_equal(first, envs.reset()[0]), "without a seed, other episodes"
    assert len(np.unique(first[:, 0])) == 4, "environments differ"
    training, evaluation = (make_vec("cart-pole", 4, split=split).reset(seed=1)[0] for split in ("training", "evaluation"))
    assert training.shape == evaluation.shape


def test_settings_are_those_of_an_experiment(tmp_path):
    settings = {"users": 4, "channels": 3, "episode_steps": 7, "max_bits_per_hz": float("inf"), "observe": ("state",)}
    config = tmp_path / "links.toml"
    config.write_text(
        "[scenario.uara]\nusers = 4\nchannels = 3\nepisode_steps = 7\nmax_bits_per_hz = inf\nobserve = [\"state\"]\n[train]\nn_envs = 3\n[dqn]\n"
    )
    own, of_file = brasa.make("uara", settings=settings), brasa.make(config)
    np.testing.assert_array_equal(own.reset(seed=1)[0], of_file.reset(seed=1)[0])
    assert own.action_space == of_file.action_space
    with pytest.raises(ValueError, match="an experiment has its own"):
        brasa.make(config, settings=settings)


def test_arrays_are_kept_or_copied():
    envs = make_vec("pendulum", 2, copy=False)
    obs, _ = envs.reset(seed=1)
    later, reward, *_ = envs.step(np.zeros((2, 1), dtype=np.float32))
    assert obs is later, "the same array, rewritten"
    envs = make_vec("pendulum", 2)
    obs, _ = envs.reset(seed=1)
    before = obs.copy()
    envs.step(np.zeros((2, 1), dtype=np.float32))
    np.testing.assert_array_equal(obs, before)


def test_stable_baselines3_learns():
    pytest.importorskip("stable_baselines3", reason="SKIPPED: there is no stable-baselines3")
    from brasa.stable_baselines3 import Sb3VecEnv
    from stable_baselines3 import PPO
    from stable_baselines3.common.evaluation import evaluate_policy

    def envs(split):
        return Sb3VecEnv(brasa.make_vec("cart-pole", 8, split=split, copy=False))

    schedule = {"learning_rate": lambda left: 1e-3 * left, "clip_range": lambda left: 0.2 * left}
    model = PPO(
        "MlpPolicy", envs("training"), n_steps=32, batch_size=256, n_epochs=20, gamma=0.98, gae_lambda=0.8, seed=1, **schedule
    )
    model.learn(40_000)
    mean, _ = evaluate_policy(model, envs("evaluation"), 20)
    assert mean > 300, mean


def test_a_step_leaves_pythons_lock():
    envs = make_vec("citylearn", 512, n_threads=1)
    envs.reset(seed=1)
    actions = np.zeros(envs.action_space.shape, dtype=np.float32)
    counted, done = [0], threading.Event()

    def count():
        while not done.is_set():
            counted[0] += 1
            time.sleep(0)

    thread = threading.Thread(target=count)
    thread.start()
    begin = time.perf_counter()
    while time.perf_counter() - begin < 0.5:
        envs.step(actions)
    done.set()
    thread.join()
    assert counted[0] > 20, "the other thread hardly ran"


def test_masks_are_given_and_obeyed():
    envs = make_vec("evacuation", 2)
    _, info = envs.reset(seed=1)
    assert info["action_mask"].shape[0] == 2 and info["action_mask"].dtype == np.int8
    np.testing.assert_array_equal(envs.action_masks(), info["action_mask"].astype(bool))
    with pytest.raises(AttributeError, match="no masks"):
        make_vec("pendulum", 2).action_masks()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: brasa.make("carpole"), ValueError, r"unknown scenario `carpole` \(did you mean `cart-pole`\?\); there are"),
        (lambda: brasa.make("citylearn", settings={"buildingz": 3}), ValueError, "buildingz"),
        (lambda: brasa.make("citylearn", settings={"reward": None}), ValueError, "`settings` must be numbers, texts"),
        (lambda: brasa.make("cart-pole", split="test"), ValueError, "`split` must be"),
        (lambda: brasa.make_vec("cart-pole", 0), ValueError, "`num_envs` must be at least 1 and below 2"),
        (lambda: brasa.make_vec("cart-pole", 2, autoreset_mode=AutoresetMode.DISABLED), ValueError, "`autoreset_mode` must be"),
        (lambda: brasa.load("no-such-run"), ValueError, "no-such-run"),
        (lambda: started().step(np.zeros((3, 1))), ValueError, "actions must have the shape"),
        (lambda: started().step(np.full((2, 1), np.nan)), ValueError, "NaN"),
        (lambda: started("cart-pole").step(np.array([0, 2])), ValueError, r"action 0 must be in 0\.\.2, got 2"),
        (lambda: brasa.make("pendulum").step(np.zeros(1)), gym.error.ResetNeeded, "call reset"),
        (lambda: started().reset(seed=[1, 2]), ValueError, "`seed` must be one number"),
    ],
)
def test_bad_input_is_named(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_a_policy_that_remembers_acts_as_its_run_does(tmp_path):
    config, run = trained(
        tmp_path,
        "[scenario.cart-pole-no-velocity]\n[train]\ntotal_env_steps = 4096\nn_envs = 8\neval_seed = 7\n"
        "[recurrent_network]\nkind = \"gru\"\nwidth = 8\n[ppo]\nn_steps = 64\nbatch_size = 512\nlearning_rate = 3e-3\n",
    )
    said = subprocess.run(["brasa", "eval", run, "--episodes", "20", "--json"], check=True, capture_output=True, text=True).stdout
    expected = json.loads(said)["controllers"]["trained"]["return"]
    policy = brasa.load(run)
    envs = brasa.make_vec(config, 20, split="evaluation")
    obs, _ = envs.reset(seed=7)
    returns, running, state, starts = np.zeros(20), np.ones(20, dtype=bool), None, np.ones(20, dtype=bool)
    while running.any():
        actions, state = policy.predict(obs, state, starts)
        obs, reward, terminated, truncated, _ = envs.step(actions)
        starts = terminated | truncated
        returns += reward * running
        running &= ~starts
    assert returns.mean() == pytest.approx(expected)
    assert state.shape == (20, policy.state_width)
    with pytest.raises(ValueError, match="remembers"):
        policy.act(obs)
    for wrong, flags in ((state[:, 1:], None), (state[:5], None), (state, starts[:3]), (3.0, None)):
        with pytest.raises(ValueError):
            policy.predict(obs, wrong, flags)


def started(scenario="pendulum"):
    envs = make_vec(scenario, 2)
    envs.reset(seed=1)
    return envs


def test_a_policy_acts_as_its_run_does(tmp_path):
    """The command evaluates the run; here the same episodes are played in Python."""
    config, run = trained(
        tmp_path,
        "[scenario.cart-pole]\n[train]\ntotal_env_steps = 8192\nn_envs = 8\nnormalize_obs = true\neval_seed = 7\n[ppo]\nn_steps = 64\n"
        "batch_size = 128\nlearning_rate = 1e-3\n",
    )
    said = subprocess.run(["brasa", "eval", run, "--episodes", "20", "--json"], check=True, capture_output=True, text=True).stdout
    expected = json.loads(said)["controllers"]["trained"]["return"]
    policy = brasa.load(run)
    envs = brasa.make_vec(config, 20, split="evaluation")
    obs, _ = envs.reset(seed=7)
    returns, running = np.zeros(20), np.ones(20, dtype=bool)
    while running.any():
        obs, reward, terminated, truncated, _ = envs.step(policy.act(obs))
        returns += reward * running
        running &= ~(terminated | truncated)
    assert returns.mean() == pytest.approx(expected)
    assert policy.act(obs[0]).shape == policy.action_space.shape
    with pytest.raises(ValueError, match="observations must have the shape"):
        policy.act(np.zeros(5))
    with pytest.raises(ValueError, match="no masks"):
        policy.act(obs, np.ones((20, 2)))
