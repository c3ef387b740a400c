"""Programs that take environments: Gymnasium's checker and wrappers, Stable-Baselines3, type checkers, ``pickle`` and ``copy``."""

import copy
import importlib.util
import pickle
import subprocess
import sys
import warnings

import brasa
import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import NormalizeReward, RecordEpisodeStatistics

from common import SCENARIOS, legal, make, make_vec, trained

MODES = [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP]


def has(module):
    return importlib.util.find_spec(module) is not None


needs_sb3 = pytest.mark.skipif(not has("stable_baselines3"), reason="SKIPPED: there is no stable-baselines3")


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_gymnasiums_checker_accepts_every_id_without_settings(scenario):
    env = gym.make(brasa.ids()[scenario])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_env(env.unwrapped, skip_render_check=True)
    env = gym.make(brasa.ids()[scenario], render_mode=None)
    assert env.render_mode is None


@needs_sb3
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_checker_of_stable_baselines3_accepts_every_id(scenario):
    from stable_baselines3.common.env_checker import check_env

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_env(gym.make(brasa.ids()[scenario]).unwrapped)


@needs_sb3
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_stable_baselines3_trains_every_id_by_name(scenario):
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    own = brasa.ids()[scenario]
    space = gym.make(own).action_space
    if getattr(space, "nvec", np.zeros(1)).ndim > 1:
        with pytest.raises(AssertionError, match="MultiDiscrete"):
            PPO("MlpPolicy", own)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        PPO("MlpPolicy", own, n_steps=16, batch_size=16, n_epochs=1, device="cpu").learn(16)
        PPO("MlpPolicy", make_vec_env(own, 2), n_steps=8, batch_size=16, n_epochs=1, device="cpu").learn(16)


@pytest.mark.parametrize("mode", ["human", "rgb_array", "rgb_array_list", "ansi", "no-such-mode"])
def test_modes_of_rendering_are_a_type_error(mode):
    """Stable-Baselines3 asks for a mode, and after a `TypeError` for none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in (
            lambda: gym.make("brasa/CartPole-v0", render_mode=mode),
            lambda: gym.make_vec("brasa/CartPole-v0", 2, render_mode=mode),
            lambda: brasa.make("cart-pole", render_mode=mode),
            lambda: brasa.make_vec("cart-pole", 2, render_mode=mode),
        ):
            with pytest.raises(TypeError, match="`render_mode` must be None"):
                call()


@needs_sb3
@pytest.mark.parametrize("scenario", ["station", "uara", "evacuation"])
def test_infos_have_the_figures_of_every_step(scenario, tmp_path):
    from brasa.stable_baselines3 import Sb3VecEnv
    from stable_baselines3.common.vec_env import VecMonitor

    own = make_vec(scenario, 2)
    if not own.info_names:
        pytest.skip("this scenario has no figures")
    names = tuple(own.info_names)
    envs = VecMonitor(Sb3VecEnv(own), str(tmp_path / "monitor.csv"), info_keywords=names)
    other = make_vec(scenario, 2)
    envs.seed(3)
    envs.reset()
    _, info = other.reset(seed=3)
    rng, ended = np.random.default_rng(0), 0
    for _ in range(1500):
        space = other.action_space
        actions = legal(space, info, rng)
        _, rewards, dones, infos = envs.step(actions.reshape(envs.num_envs, *envs.action_space.shape))
        _, _, _, _, info = other.step(actions)
        assert len(infos) == envs.num_envs
        n_agents = own.form.n_agents
        for row, of_row in enumerate(infos):
            assert all(of_row[name] == info[name][row // n_agents] for name in names)
            assert ("episode" in of_row) == dones[row] == ("terminal_observation" in of_row)
            if dones[row]:
                assert set(names) | {"r", "l", "t"} == set(of_row["episode"])
                ended += 1
        if ended > 1:
            break
    envs.close()
    assert ended > 1, "no episode ended"
    lines = (tmp_path / "monitor.csv").read_text().splitlines()
    assert len(lines) == 2 + ended


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("scenario", ["cart-pole", "uara"])
def test_wrappers_of_gymnasium_count_episodes(scenario, mode):
    envs = RecordEpisodeStatistics(NormalizeReward(make_vec(scenario, 3, autoreset_mode=mode)))
    plain = make_vec(scenario, 3, autoreset_mode=mode)
    _, info = envs.reset(seed=1)
    plain.reset(seed=1)
    rng = np.random.default_rng(1)
    lengths, seen = [], 0
    running = np.zeros(3, dtype=int)
    fresh = np.zeros(3, dtype=bool)
    for _ in range(300):
        actions = legal(envs.action_space, info, rng)
        _, _, terminated, truncated, info = envs.step(actions)
        _, _, t, u, _ = plain.step(actions)
        np.testing.assert_array_equal(terminated | truncated, t | u)
        running += ~fresh
        for i in np.flatnonzero(terminated | truncated):
            assert info["_episode"][i] and info["episode"]["l"][i] == running[i]
            lengths.append(running[i])
            running[i] = 0
            seen += 1
        fresh = (terminated | truncated) & (mode == AutoresetMode.NEXT_STEP)
    assert seen > 3 and envs.episode_count == seen and len(set(lengths)) >= 1


def test_forbidden_choices_are_replaced_or_an_error():
    envs, strict = make_vec("evacuation", 2), make_vec("evacuation", 2, illegal_actions="error")
    _, info = envs.reset(seed=1)
    strict.reset(seed=1)
    given = info["action_mask"].argmin(axis=1)
    assert (info["action_mask"][[0, 1], given] == 0).all()
    first = info["action_mask"].argmax(axis=1)
    mixed = np.array([given[0], first[1]])
    before = mixed.copy()
    with pytest.raises(ValueError, match="action 0 of agent 0 of environment 0 must be one that the mask allows"):
        strict.step(mixed)
    obs, reward, _, _, info = envs.step(mixed)
    expected, expected_reward, _, _, other = strict.step(first)
    np.testing.assert_array_equal(obs, expected)
    np.testing.assert_array_equal(reward, expected_reward)
    np.testing.assert_array_equal(info["illegal_actions"], [1, 0])
    np.testing.assert_array_equal(other["illegal_actions"], [0, 0])
    np.testing.assert_array_equal(mixed, before)
    floats = mixed.astype(np.float32)
    envs.step(floats)
    np.testing.assert_array_equal(floats, before)
    env = make("evacuation", illegal_actions="error")
    _, info = env.reset(seed=1)
    with pytest.raises(ValueError, match="must be one that the mask allows"):
        env.step(int(info["action_mask"].argmin()))
    with pytest.raises(ValueError, match="`illegal_actions` must be"):
        make("evacuation", illegal_actions="ignore")


@pytest.mark.parametrize("again", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_copy_goes_on_as_the_original(scenario, again):
    env = make(scenario)
    _, info = env.reset(seed=4)
    rng = np.random.default_rng(2)
    obs = None
    for _ in range(7):
        obs, _, terminated, truncated, info = env.step(legal(env.action_space, info, rng))
        if terminated or truncated:
            obs, info = env.reset()
    other = again(env)
    assert other.unwrapped is other and other.observation_space == env.observation_space
    own = info
    for step in range(60):
        action = legal(env.action_space, own, rng)
        expected, reward, terminated, truncated, own = env.step(action)
        got = other.step(action)
        np.testing.assert_array_equal(got[0], expected)
        assert got[1:4] == (reward, terminated, truncated)
        assert all(got[4][name] == own[name] for name in env.info_names)
        if terminated or truncated or step == 30:
            (expected, own), (got, _) = env.reset(), other.reset()
            np.testing.assert_array_equal(got, expected)
    assert env.reset(seed=9)[0].shape == other.reset(seed=9)[0].shape


@pytest.mark.parametrize("n_threads", [None, 2])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("again", [copy.deepcopy, lambda envs: pickle.loads(pickle.dumps(envs))])
def test_a_copy_of_several_goes_on_as_the_original(again, mode, n_threads):
    for scenario in ("cart-pole", "uara", "evacuation"):
        envs = make_vec(scenario, 4, autoreset_mode=mode, n_threads=n_threads if mode == AutoresetMode.SAME_STEP else None)
        _, info = envs.reset(seed=4)
        rng = np.random.default_rng(2)
        for _ in range(23):
            *_, info = envs.step(legal(envs.action_space, info, rng))
        other = again(envs)
        for _ in range(60):
            actions = legal(envs.action_space, info, rng)
            *expected, info = envs.step(actions)
            *got, infos = other.step(actions)
            for a, b in zip(got, expected):
                np.testing.assert_array_equal(a, b)
            assert infos.keys() == info.keys()


def test_an_environment_of_gymnasium_is_copied():
    env = gym.make("brasa/CartPole-v0")
    env.reset(seed=1)
    other = copy.deepcopy(env)
    assert other.spec.id == "brasa/CartPole-v0"
    np.testing.assert_array_equal(env.step(0)[0], other.step(0)[0])
    envs = gym.make_vec("brasa/CartPole-v0", 3, vectorization_mode="async")
    assert envs.reset(seed=1)[0].shape == (3, 4)
    envs.close()


PENDULUM = "[scenario.pendulum]\n[train]\ntotal_env_steps = 512\nn_envs = 4\n[ppo]\nn_steps = 32\nbatch_size = 64\n"


def test_a_policy_is_copied_and_pickled(tmp_path):
    config, run = trained(tmp_path, PENDULUM)
    policy = brasa.load(run)
    obs = brasa.make_vec(config, 5).reset(seed=1)[0]
    expected = policy.act(obs)
    for other in (copy.copy(policy), copy.deepcopy(policy), pickle.loads(pickle.dumps(policy))):
        np.testing.assert_array_equal(other.act(obs), expected)
    assert policy.env_steps == 512
    pickled = pickle.dumps(policy)
    config.write_text(PENDULUM.replace("512", "1024"))
    longer = subprocess.run(
        ["brasa", "train", "--resume", run, "--set", "train.total_env_steps=1024", "--quiet"], capture_output=True, text=True
    )
    assert longer.returncode == 0, longer.stderr
    with pytest.raises(RuntimeError, match="was pickled after 512 environment steps, and the run in .* has gone on to 1024"):
        pickle.loads(pickled)


USER = '''
import brasa
import gymnasium as gym
import numpy as np
import numpy.typing as npt

env = brasa.make("cart-pole", settings={}, split="evaluation")
first: npt.NDArray[np.float32] = env.reset(seed=1)[0]
reward: float = env.step(0)[1]
generic: gym.Env[npt.NDArray[np.float32], int] = env
envs = brasa.make_vec("uara", 4, n_threads=2)
mask: npt.NDArray[np.bool_] = envs.action_masks()
names: list[str] = envs.info_names
policy: brasa.Policy = brasa.load("run")
actions = policy.act(first)
steps: int | None = policy.env_steps
ids: dict[str, str] = brasa.ids()
'''
WRONG = '''
import brasa

brasa.make("cart-pole", split="test")
brasa.make_vec("cart-pole", "4")
brasa.load(3)
brasa.make("cart-pole", render_mode="human")
'''


def said(folder, name, *command):
    done = subprocess.run([sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True)
    assert "Traceback" not in done.stderr and "No module named" not in done.stderr, f"{name}: {done.stderr}"
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """NumPy is read once."""
    return ["--strict", "--cache-dir", str(tmp_path_factory.mktemp("mypy"))]


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_types_are_those_of_callers(checker, cache, tmp_path):
    if not has(checker):
        pytest.skip(f"SKIPPED: there is no {checker}")
    (tmp_path / "user.py").write_text(USER)
    (tmp_path / "wrong.py").write_text(WRONG)
    # Another interpreter than the checker's own has the packages.
    options = ["--pythonpath", sys.executable] if checker == "pyright" else [*cache, "--python-executable", sys.executable]
    code, text = said(tmp_path, checker, checker, *options, "user.py")
    assert code == 0, text
    code, text = said(tmp_path, checker, checker, *options, "wrong.py")
    assert code == 1 and text.count("error:") >= 4, text


def test_types_agree_with_the_package(cache, tmp_path):
    if not has("mypy"):
        pytest.skip("SKIPPED: there is no mypy")
    of_package, checked = [], "brasa"
    if not has("stable_baselines3"):
        # One module cannot be imported then; the only stub is that of the native part.
        of_package = ["--exclude", "stable_baselines3", "--disable-error-code", "import-not-found", "--allow-subclassing-any"]
        checked = "brasa._brasa"
    code, text = said(tmp_path, "mypy", "mypy", *cache, *of_package, "-p", "brasa")
    assert code == 0, text
    code, text = said(tmp_path, "stubtest", "mypy.stubtest", checked)
    assert code == 0, text
