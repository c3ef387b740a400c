"""Arguments that no caller should pass, and threads: errors of Python, never a panic (`PanicException`, which is no `Exception`)."""

import copy
import threading

import brasa
import gymnasium as gym
import numpy as np
import pytest
from brasa import _brasa
from gymnasium.vector import AutoresetMode

from common import make, make_vec, trained

NAN, INF = float("nan"), float("inf")
HOSTILE = [
    None, True, -1, 0, 2**31, 2**63, 2**64, -(2**70), 1e300, NAN, INF, 1j, "", "x", "\0", "\ud800", "brasa" * 1000, b"x", (), [], [[]],
    [1, [2, 3]], {}, {"a": {"b": []}}, object(), print, np.zeros(0), np.zeros((0, 4)), np.zeros((2, 3, 4, 5)), np.full(4, NAN),
    np.array(["a"]), np.array([None]), np.array(3), np.zeros(4, dtype=complex), np.zeros(2, dtype=[("a", int)]),
    np.array("2020-01-01", dtype="datetime64[s]"), np.broadcast_to(np.float32(0), (2, 1)), np.zeros((4, 3), dtype=np.float32)[::-2, ::-3],
]  # fmt: skip


def started(scenario="pendulum", n=2, **arguments):
    envs = make_vec(scenario, n, **arguments)
    envs.reset(seed=1)
    return envs


def one(scenario="cart-pole"):
    env = make(scenario)
    env.reset(seed=1)
    return env


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Policies with continuous actions, with masks, and over a graph."""
    small = "[train]\ntotal_env_steps = 256\nn_envs = 2\n[ppo]\nn_steps = 32\nbatch_size = 64\n"
    texts = {
        "pendulum": f"[scenario.pendulum]\n{small}",
        "cart-pole": f"[scenario.cart-pole]\n{small}",
        "uara": f"[scenario.uara]\nusers = 3\nchannels = 2\nepisode_steps = 5\n{small}",
        "evacuation": f"[scenario.evacuation]\n{small}[network]\nactor_hidden = [8]\ncritic_hidden = [8]\n",
        "graph": f"[scenario.evacuation]\n{small}[graph_network]\nlayers = [{{ heads = 1, outputs = 4 }}]\n",
    }
    return {name: trained(tmp_path_factory.mktemp(name), text) for name, text in texts.items()}


CALLS = {
    "make(scenario)": lambda x: brasa.make(x),
    "make(settings)": lambda x: brasa.make("cart-pole", settings=x),
    "make(settings of a key)": lambda x: brasa.make("citylearn", settings={"episode_steps": x}),
    "make(settings by key)": lambda x: brasa.make("citylearn", settings={x: 1}),
    "make(split)": lambda x: brasa.make("cart-pole", split=x),
    "make(illegal_actions)": lambda x: brasa.make("cart-pole", illegal_actions=x),
    "make(render_mode)": lambda x: brasa.make("cart-pole", render_mode=x),
    "make_vec(scenario)": lambda x: brasa.make_vec(x, 2),
    "make_vec(num_envs)": lambda x: brasa.make_vec("cart-pole", x),
    "make_vec(num_envs, NEXT_STEP)": lambda x: brasa.make_vec("cart-pole", x, autoreset_mode=AutoresetMode.NEXT_STEP),
    "make_vec(autoreset_mode)": lambda x: brasa.make_vec("cart-pole", 2, autoreset_mode=x),
    "make_vec(n_threads)": lambda x: brasa.make_vec("cart-pole", 2, n_threads=x),
    "make_vec(copy)": lambda x: brasa.make_vec("cart-pole", 2, copy=x),
    "load": lambda x: brasa.load(x),
    "Env.reset(seed)": lambda x: one().reset(seed=x),
    "Env.reset(options)": lambda x: one().reset(options=x),
    "Env.step": lambda x: one().step(x),
    "Env.step, continuous": lambda x: one("pendulum").step(x),
    "Env.step, masks": lambda x: one("evacuation").step(x),
    "Env.step, agents": lambda x: one("uara").step(x),
    "VectorEnv.reset(seed)": lambda x: started().reset(seed=x),
    "VectorEnv.reset(options)": lambda x: started().reset(options=x),
    "VectorEnv.step": lambda x: started().step(x),
    "VectorEnv.step, choices": lambda x: started("cart-pole").step(x),
    "VectorEnv.step, masks": lambda x: started("evacuation").step(x),
    "VectorEnv.step, agents": lambda x: started("uara", autoreset_mode=AutoresetMode.NEXT_STEP).step(x),
    "native Batch(text)": lambda x: _brasa.Batch(x, "here", 1, "training", False, 1),
    "native Batch(origin)": lambda x: _brasa.Batch("[scenario.cart-pole]", x, 1, "training", False, 1),
    "native Batch(num_envs)": lambda x: _brasa.Batch("[scenario.cart-pole]", "here", x, "training", False, None),
    "native Batch(num_envs, apart)": lambda x: _brasa.Batch("[scenario.cart-pole]", "here", x, "training", True, None),
    "native Batch(split)": lambda x: _brasa.Batch("[scenario.cart-pole]", "here", 1, x, False, 1),
    "native Batch(n_threads)": lambda x: _brasa.Batch("[scenario.cart-pole]", "here", 2, "training", False, x),
    "native reset": lambda x: native().reset(x),
    "native restart": lambda x: native().restart(x),
    "native step": lambda x: native().step(x, None),
    "native step(held)": lambda x: native().step(np.zeros((2, 1), dtype=np.float32), x),
    "native step, not reset": lambda x: native(False).step(np.full((2, 1), 7, dtype=np.float32), None),
    "native load": lambda x: native().load(x),
    "native load of bytes": lambda x: native().load([bytes(str(x), "utf-8", "replace")]),
    "native Policy": lambda x: _brasa.Policy(x),
}


def native(is_started=True):
    batch = _brasa.Batch("[scenario.cart-pole]", "here", 2, "training", False, 1)
    if is_started:
        batch.reset(1)
    return batch


@pytest.mark.parametrize("name", CALLS)
def test_no_argument_is_a_panic(name):
    for value in HOSTILE:
        try:
            CALLS[name](value)
        except Exception as error:  # noqa: BLE001: what is left is a panic
            assert not str(error).startswith("brasa failed"), f"{name}, {value!r}: {error}"
            kinds = (ValueError, TypeError, OverflowError, RuntimeError, OSError, gym.error.Error)
            assert isinstance(error, kinds), f"{name}, {value!r}: {error!r}"


@pytest.mark.parametrize("run", ["pendulum", "cart-pole", "uara", "evacuation", "graph"])
def test_no_input_of_a_policy_is_a_panic(run, runs):
    policy = brasa.load(runs[run][1])
    obs = np.zeros(policy.observation_space.shape, dtype=np.float32)
    mask = np.ones(policy.form.mask_shape) if policy.form.n_actions else None
    for value in HOSTILE:
        calls = [
            lambda: policy.act(value, mask), lambda: policy.act(value), lambda: policy.predict(value),
            lambda: policy.predict(obs, action_masks=value), lambda: policy.act(obs, value),
            lambda: policy.predict(obs, action_masks=mask, deterministic=value),
            lambda: policy._native.act(value, mask), lambda: policy._native.act(obs.reshape(policy.form.n_agents, -1), value),
        ]  # fmt: skip
        for call in calls:
            try:
                call()
            except (ValueError, TypeError) as error:
                assert isinstance(error, ValueError) or "_native" in call.__code__.co_names, f"{run}, {value!r}: {error!r}"


@pytest.mark.parametrize("run", ["pendulum", "cart-pole", "uara", "evacuation", "graph"])
def test_invalid_input_of_a_policy_is_no_plausible_action(run, runs):
    config, path = runs[run]
    policy, envs = brasa.load(path), brasa.make_vec(config, 3)
    obs, info = envs.reset(seed=1)
    mask = info.get("action_mask")
    whole = policy.act(obs, mask)
    assert whole.shape == (3, *policy.action_space.shape)

    def is_none(actions):
        return (actions == -1).all() if policy.form.is_choice else np.isnan(actions).all()

    def changed(at, value):
        other = obs.copy()
        other.reshape(3 * policy.form.n_agents, -1)[0, at] = value
        actions = policy.act(other, mask).reshape(3 * policy.form.n_agents, -1)
        assert is_none(actions[0]), (at, value, actions[0])
        np.testing.assert_array_equal(actions[1:], whole.reshape(actions.shape)[1:])

    for at in (0, 1, -1):
        changed(at, NAN)
    if run == "graph":
        for value in (7, -1, 0.5, 1e9, INF):
            changed(0, value)
            changed(1, value + 900)
    if mask is not None:
        for value, dtype in ((0, int), (False, bool), (NAN, float), (-1, int)):
            other = mask.astype(dtype)
            other.reshape(3 * policy.form.n_agents, -1)[0] = value
            actions = policy.act(obs, other).reshape(3 * policy.form.n_agents, -1)
            assert is_none(actions[0]), (value, actions[0])
            np.testing.assert_array_equal(actions[1:], whole.reshape(actions.shape)[1:])
        np.testing.assert_array_equal(policy.act(obs, mask.astype(bool)), whole)


@pytest.mark.parametrize("run", ["pendulum", "uara", "evacuation"])
def test_wrong_lengths_and_types_are_named(run, runs):
    config, path = runs[run]
    policy, envs = brasa.load(path), brasa.make_vec(config, 2)
    obs, info = envs.reset(seed=1)
    mask = info.get("action_mask")
    for wrong in (obs[..., :-1], obs[np.newaxis], obs[:0], np.concatenate([obs, obs], axis=-1), obs.ravel(), obs[0].ravel()[:-1]):
        with pytest.raises(ValueError, match="observations must have the shape"):
            policy.act(wrong, mask)
    for wrong in (obs.astype(str), obs.astype(object), obs.astype(complex), [list(obs), 1], None, "obs"):
        with pytest.raises(ValueError, match="observations must be an array of numbers"):
            policy.act(wrong, mask)
    if mask is None:
        with pytest.raises(ValueError, match="the mask must be None"):
            policy.act(obs, np.ones((2, 1)))
        return
    for wrong in (mask[..., :-1], mask[0], mask[:1], mask[np.newaxis], np.concatenate([mask, mask])):
        with pytest.raises(ValueError, match="the mask must have the shape"):
            policy.act(obs, wrong)
    for wrong in (mask.astype(str), mask.astype(object)):
        with pytest.raises(ValueError, match="the mask must be an array of numbers"):
            policy.act(obs, wrong)
    with pytest.raises(ValueError, match="a mask of the shape .* must be given"):
        policy.act(obs)
    if run == "uara" and policy.form.n_actions > 2:
        other = np.ones_like(mask)
        other[0, 0, 0] = 0
        with pytest.raises(ValueError, match="`mask` must have equal flags"):
            policy.act(obs, other)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: make_vec("cart-pole", -1), ValueError, "`num_envs` must be at least 1 and below"),
        (lambda: make_vec("cart-pole", 2**64), ValueError, "`num_envs` must be at least 1 and below"),
        (lambda: make_vec("cart-pole", 2**40), ValueError, "must fit into the memory of this machine"),
        (lambda: make_vec("cart-pole", 2**40, autoreset_mode=AutoresetMode.NEXT_STEP), ValueError, "must fit into the memory"),
        (lambda: make_vec("cart-pole", 1.5), ValueError, "`num_envs` must be a whole number"),
        (lambda: make_vec("cart-pole", 4, n_threads=0), ValueError, "`n_threads` must be at least 1"),
        (lambda: make_vec("cart-pole", 4, n_threads=10**9), ValueError, "`n_threads` must be between 1"),
        (lambda: started().reset(seed=2**64), ValueError, r"`seed` must be in 0\.\.2\*\*64, got 18446744073709551616"),
        (lambda: started().reset(seed=-1), ValueError, r"`seed` must be in 0\.\.2\*\*64, got -1"),
        (lambda: one().reset(seed=-(2**70)), ValueError, r"`seed` must be in 0\.\.2\*\*64"),
        (lambda: one().reset(seed=1.0), ValueError, "`seed` must be one number"),
        (lambda: one().reset(options=[1]), ValueError, "`options` must be a dictionary"),
        (lambda: one().step(None), ValueError, "actions must be an array of numbers"),
        (lambda: started().step(np.array([["a"], ["b"]])), ValueError, "actions must be an array of numbers"),
        (lambda: started().step([[1e300], [0.0]]), ValueError, "actions must be numbers, got NaN or infinity"),
        (lambda: brasa.make(3), ValueError, "`scenario` must be a name"),
        (lambda: brasa.make("cart-pole", settings=[1]), ValueError, "`settings` must be a dictionary"),
        (lambda: brasa.make("no-such.toml"), FileNotFoundError, "no-such.toml"),
        (lambda: _brasa.Batch("[scenario.cart-pole]", "here", -1, "training", False, 1), OverflowError, "negative"),
        (lambda: native().restart(2**63), ValueError, "`env` must be below 2"),
        (lambda: native().load([]), ValueError, "`saved` must have 1 parts, got 0"),
        (lambda: native().load([b"no state"]), RuntimeError, "saved state of the environments cannot be used"),
    ],
)
def test_bad_arguments_are_named(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_a_seed_may_have_64_bits():
    for seed in (0, 2**63, 2**64 - 1, np.uint64(2**64 - 1)):
        np.testing.assert_array_equal(one().reset(seed=seed)[0], started("cart-pole", 1).reset(seed=seed)[0][0])


def together(n, work):
    """What ``n`` threads raised."""
    errors, barrier = [], threading.Barrier(n)

    def run(index):
        barrier.wait()
        try:
            work(index)
        except BaseException as error:  # noqa: BLE001: a panic is one too
            errors.append(error)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP])
def test_two_threads_in_one_batch_are_an_error(mode):
    envs = started("citylearn", 256, autoreset_mode=mode)
    actions = np.zeros(envs.action_space.shape, dtype=np.float32)

    def work(index):
        for step in range(60):
            if index == 1 and step % 20 == 0:
                envs.reset(seed=step)
            elif index == 2:
                copy.deepcopy(envs)
            envs.step(actions)

    errors = together(4, work)
    assert errors, "nothing ran at the same time"
    for error in errors:
        assert isinstance(error, RuntimeError) and "another thread is using these environments" in str(error), repr(error)
    envs.reset(seed=1)
    envs.step(actions)


def test_two_threads_in_one_native_batch_are_an_error():
    envs = started("citylearn", 512)
    actions = np.zeros((512, envs.action_space.shape[-1]), dtype=np.float32)
    errors = together(4, lambda _: [envs._batch.native.step(actions, None) for _ in range(60)])
    assert errors and all(isinstance(error, RuntimeError) for error in errors), errors


def test_two_threads_in_one_environment():
    env = one("citylearn")
    action = np.zeros(env.action_space.shape, dtype=np.float32)
    errors = together(4, lambda _: [env.step(action) for _ in range(300)])
    assert all(isinstance(error, RuntimeError) for error in errors), errors
    env.reset(seed=1)
    env.step(action)


@pytest.mark.parametrize("run", ["pendulum", "graph"])
def test_threads_share_a_policy(run, runs):
    config, path = runs[run]
    policy = brasa.load(path)
    obs, info = brasa.make_vec(config, 16).reset(seed=1)
    expected, actions = policy.act(obs, info.get("action_mask")), [None] * 6

    def work(index):
        for _ in range(30):
            actions[index] = policy.act(obs, info.get("action_mask"))

    assert together(6, work) == []
    for got in actions:
        np.testing.assert_array_equal(got, expected)
    # The thread that loaded it may be gone.
    kept = []
    thread = threading.Thread(target=lambda: kept.append(brasa.load(path)))
    thread.start()
    thread.join()
    np.testing.assert_array_equal(kept.pop().act(obs, info.get("action_mask")), expected)


def test_after_an_error_in_the_middle_of_a_step_comes_a_reset():
    batch = _brasa.Batch("[scenario.evacuation]", "here", 2, "training", False, 1)
    batch.reset(1)
    mask = batch.arrays()["mask"]
    right, wrong = mask.argmax(axis=1), mask.argmin(axis=1)
    with pytest.raises(ValueError, match="must be options that the mask allows"):
        batch.step(np.array([[right[0]], [wrong[1]]], dtype=np.float32), None)
    with pytest.raises(RuntimeError, match="an earlier call failed in the middle"):
        batch.step(right[:, np.newaxis].astype(np.float32), None)
    batch.reset(1)
    batch.step(right[:, np.newaxis].astype(np.float32), None)
