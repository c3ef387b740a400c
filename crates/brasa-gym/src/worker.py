"""A worker of brasa-gym: it owns a range of the environments of a batch, and steps them one after the other.

The parent sends commands on the first pipe, the worker answers on the second one. A command is one byte; some have a body, which
follows its length (8 bytes, little-endian). A reply has the same form.

    command                      body                         reply
    c  create the environments   JSON: id, kwargs, range      h and their description as JSON
    a  map the shared memory     JSON: path and offsets       d
    s  step                                                   d
    r  reset all                                              d
    o  reset one                 its index, 8 bytes           d
    v  save                                                   v and the saved states
    l  load                      saved states                 d

Every command may be answered by `e` and an error as JSON. Observations, rewards and flags are written to the shared memory. The end
of the first pipe ends the worker.
"""

import os
import sys

# The pipes are taken before anything else may print: what environments print goes to stderr.
COMMANDS, REPLIES = os.dup(0), os.dup(1)
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
os.dup2(2, 1)
sys.stdout.reconfigure(line_buffering=True)

import copyreg
import importlib
import io
import json
import math
import pickle
import signal
import struct
import threading
import time
import traceback

TERMINATED, TRUNCATED = 1, 2


def end_with_parent():
    """Ends this process when the parent dies, even in the middle of a step."""
    try:
        import ctypes

        # PR_SET_PDEATHSIG. The parent starts workers on a thread that lives as long as itself.
        if sys.platform == "linux" and ctypes.CDLL(None).prctl(1, signal.SIGKILL) == 0:
            return
    except (ImportError, OSError, AttributeError):
        pass
    parent = os.getppid()

    def watch():
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class Refused(Exception):
    """An error that the parent reports without a traceback: its kind and the parts of its message."""

    def __init__(self, kind, message, **parts):
        super().__init__(message)
        self.report = {"kind": kind, "message": message, **parts}


def refuse_space(message):
    raise Refused("space", message)


# ---- Pipes


def receive(size):
    parts = []
    while size > 0:
        part = os.read(COMMANDS, min(size, 1 << 20))
        if not part:
            quit_worker()
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def receive_body():
    return receive(struct.unpack("<Q", receive(8))[0])


def send(data):
    view = memoryview(data)
    while view:
        view = view[os.write(REPLIES, view) :]


def send_body(kind, body):
    send(kind + struct.pack("<Q", len(body)) + body)


def quit_worker():
    """The parent closed its pipe."""
    for env in ENVS:
        try:
            env.close()
        except Exception:
            traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


# ---- Observations: a leaf writes one part of a row of 32-bit floats


class BoxLeaf:
    """Numbers as they are, row-major: `Box` and `MultiBinary`."""

    def __init__(self, name, shape, low, high):
        self.shape = shape
        self.width = math.prod(shape)
        self.names = [join(name, *index) for index in np.ndindex(shape)]
        self.low, self.high = low, high

    def view(self, part):
        return part.reshape(self.shape)

    def put(self, view, value):
        # A smaller array would be repeated by the assignment.
        if getattr(value, "shape", None) != self.shape:
            value = np.asarray(value)
            if value.shape != self.shape:
                refuse_space(f"an observation has the shape {value.shape}, its space {self.shape}")
        view[...] = value


class OneHotLeaf:
    """One number per alternative, 1 for the chosen one: `Discrete`, and each component of `MultiDiscrete`."""

    def __init__(self, name, shape, sizes, starts):
        self.shape = shape
        self.sizes = [int(size) for size in sizes]
        self.starts = [int(start) for start in starts]
        self.firsts = [sum(self.sizes[:i]) for i in range(len(self.sizes))]
        self.width = sum(self.sizes)
        self.names = []
        for index, size, start in zip(np.ndindex(shape), self.sizes, self.starts):
            self.names += [join(name, *index, start + choice) for choice in range(size)]
        self.low, self.high = [0.0] * self.width, [1.0] * self.width

    def view(self, part):
        return part

    def put(self, view, value):
        values = np.asarray(value)
        if values.shape != self.shape:
            refuse_space(f"an observation has the shape {values.shape}, its space {self.shape}")
        view.fill(0.0)
        for choice, first, size, start in zip(values.flat, self.firsts, self.sizes, self.starts):
            index = int(choice) - start
            if not 0 <= index < size:
                refuse_space(f"an observation is {choice}, its space has {size} values from {start}")
            view[first + index] = 1.0


def join(*parts):
    return "_".join(str(part) for part in parts if part != "")


def kind_of(space):
    """The name of a space of Gymnasium, also for classes derived from it."""
    for name in ("Box", "Discrete", "MultiDiscrete", "MultiBinary", "Dict", "Tuple"):
        if isinstance(space, getattr(spaces, name)):
            return name
    return None


def children(space, kind):
    """Keys and spaces of a `Dict` or `Tuple`."""
    return list(space.spaces.items()) if kind == "Dict" else list(enumerate(space.spaces))


def starts_of(space):
    return np.zeros(space.nvec.shape, int) if getattr(space, "start", None) is None else space.start


def finite_or_none(bounds, what):
    """Bounds as 32-bit floats for JSON, `None` for infinite ones."""
    with np.errstate(over="ignore"):
        bounds = np.asarray(bounds).astype(np.float32).ravel()
    if np.isnan(bounds).any():
        refuse_space(f"a bound of {what} is NaN")
    return [float(bound) if np.isfinite(bound) else None for bound in bounds]


def obs_leaves(space, path, name):
    """The leaves of an observation space with the keys that lead to them."""
    kind = kind_of(space)
    what = f"the observation{f' `{name}`' if name else ''}"
    if kind in ("Dict", "Tuple"):
        leaves = []
        for key, child in children(space, kind):
            leaves += obs_leaves(child, (*path, key), join(name, key))
        return leaves
    name = name or "obs"
    if kind == "Box":
        return [(path, BoxLeaf(name, space.shape, finite_or_none(space.low, what), finite_or_none(space.high, what)))]
    if kind == "MultiBinary":
        width = math.prod(space.shape)
        return [(path, BoxLeaf(name, space.shape, [0.0] * width, [1.0] * width))]
    if kind == "Discrete":
        return [(path, OneHotLeaf(name, (), [space.n], [space.start]))]
    if kind == "MultiDiscrete":
        return [(path, OneHotLeaf(name, space.shape, space.nvec.flat, np.asarray(starts_of(space)).flat))]
    refuse_space(f"{what} is a `{type(space).__name__}`, which has no fixed number of values; a wrapper may leave it out")


# ---- Actions: a leaf makes one part of an action of a part of a row


class ActionLeaf:
    def __init__(self, space, name):
        kind, what = kind_of(space), f"the action{f' `{name}`' if name else ''}"
        name = name or "action"
        self.heads = None
        if kind == "Box":
            if not np.issubdtype(space.dtype, np.floating):
                refuse_space(f"{what} is a `Box` of {space.dtype}, a box of actions must have floats")
            self.low, self.high = finite_or_none(space.low, what), finite_or_none(space.high, what)
            self.names = [join(name, *index) for index in np.ndindex(space.shape)]
            self.width = len(self.names)
            exact = space.dtype == np.float32
            bounds = (space.low, space.high)
            # The bounds were rounded to 32 bits for the learner.
            self.many = lambda rows: self.shaped(rows, space) if exact else np.clip(self.shaped(rows, space), *bounds)
        elif kind == "Discrete":
            self.heads, self.width, start = [int(space.n)], 1, int(space.start)
            self.many = lambda rows: rows[:, 0].astype(space.dtype) + space.dtype.type(start)
        elif kind in ("MultiDiscrete", "MultiBinary"):
            binary = kind == "MultiBinary"
            sizes = np.full(space.shape, 2) if binary else space.nvec
            starts = np.zeros(space.shape, space.dtype) if binary else np.asarray(starts_of(space), space.dtype)
            self.heads, self.width = [int(size) for size in sizes.flat], int(sizes.size)
            self.many = lambda rows: self.shaped(rows, space) + starts
        else:
            refuse_space(f"{what} is a `{type(space).__name__}`, which no policy can act in")

    @staticmethod
    def shaped(rows, space):
        """A copy: an environment may keep its action."""
        return rows.reshape(len(rows), *space.shape).astype(space.dtype)


def action_tree(space, name, leaves):
    """Collects the leaves of an action space; returns what puts their values together again."""
    kind = kind_of(space)
    if kind in ("Dict", "Tuple"):
        parts = [(key, action_tree(child, join(name, key), leaves)) for key, child in children(space, kind)]
        if kind == "Dict":
            return lambda values, env: {key: part(values, env) for key, part in parts}
        return lambda values, env: tuple(part(values, env) for _, part in parts)
    at = len(leaves)
    leaves.append(ActionLeaf(space, name))
    return lambda values, env: values[at][env]


class Actions:
    """Rows of numbers as actions of an environment."""

    def __init__(self, space):
        self.leaves = []
        self.tree = action_tree(space, "", self.leaves)
        self.is_leaf = kind_of(space) not in ("Dict", "Tuple")
        if not self.leaves:
            refuse_space("the action has no parts")
        discrete = {leaf.heads is not None for leaf in self.leaves}
        if len(discrete) > 1:
            refuse_space("the action has discrete and continuous parts, which no policy can act in together")
        self.discrete = discrete.pop()
        self.width = sum(leaf.width for leaf in self.leaves)

    def describe(self, space):
        if not self.discrete:
            part = lambda name: [value for leaf in self.leaves for value in getattr(leaf, name)]
            return {"box": {"names": part("names"), "low": part("low"), "high": part("high")}}
        heads = [head for leaf in self.leaves for head in leaf.heads]
        return {"discrete": heads[0]} if kind_of(space) == "Discrete" else {"multi_discrete": heads}

    def of(self, rows):
        """The actions of all rows."""
        if self.is_leaf:
            return self.leaves[0].many(rows)
        values, first = [], 0
        for leaf in self.leaves:
            values.append(leaf.many(rows[:, first : first + leaf.width]))
            first += leaf.width
        return [self.tree(values, env) for env in range(len(rows))]


# ---- Saved environments


class Saver(pickle.Pickler):
    """Writes the attributes of environments that would save only the arguments of their constructor (`EzPickle`)."""

    def reducer_override(self, value):
        ez = gymnasium.utils.EzPickle
        if isinstance(value, ez) and type(value).__getstate__ is ez.__getstate__:
            return copyreg.__newobj__, (type(value),), value.__dict__, None, None, set_attributes
        return NotImplemented


def set_attributes(value, attributes):
    value.__dict__.update(attributes)


def save_env(env):
    file = io.BytesIO()
    Saver(file, protocol=pickle.HIGHEST_PROTOCOL).dump(env)
    return file.getvalue()


def reason_not_to_save(env):
    """Why an environment cannot be saved, `None` if it can."""
    try:
        save_env(env)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


# ---- Environments

ENVS = []


def create(config):
    """Makes the environments and describes them."""
    global gymnasium, np, spaces
    try:
        import gymnasium
        import numpy as np
        from gymnasium import spaces
    except ImportError as error:
        raise Refused("missing", str(error), package=error.name or "gymnasium")
    if int(gymnasium.__version__.split(".")[0]) < 1:
        raise Refused("missing", f"version {gymnasium.__version__} is older than 1.0", package="gymnasium>=1.0")
    for module in config["import"]:
        import_named(module)
    kwargs = {"disable_env_checker": True, **config["kwargs"]}
    if config["max_episode_steps"] is not None:
        kwargs["max_episode_steps"] = config["max_episode_steps"]
    wrappers = []
    for wrapper in config["wrappers"]:
        module, _, name = wrapper["name"].partition(":")
        wrappers.append((getattr(import_named(module), name), wrapper["kwargs"]))
    for _ in range(*config["envs"]):
        env = make(config["id"], kwargs)
        for wrapper, arguments in wrappers:
            env = wrapper(env, **arguments)
        ENVS.append(env)
    return Worker(config["envs"][0])


def import_named(module):
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise Refused("missing", str(error), package=(error.name or module).split(".")[0])


def make(name, kwargs):
    try:
        return gymnasium.make(name, **kwargs)
    except gymnasium.error.UnregisteredEnv as error:
        raise Refused("unknown_id", str(error))
    except gymnasium.error.DependencyNotInstalled as error:
        raise Refused("missing", str(error), package=None)
    except ModuleNotFoundError as error:
        raise Refused("missing", str(error), package=(error.name or "").split(".")[0] or None)


class Worker:
    def __init__(self, first_env):
        self.first_env = first_env
        # Index of the environment that is in use, for errors.
        self.at = 0
        env = ENVS[0]
        self.leaves = obs_leaves(env.observation_space, (), "")
        self.actions = Actions(env.action_space)
        # Every environment is reset once before anything is known of masks and of saving.
        for self.at, env in enumerate(ENVS):
            obs, info = env.reset(seed=0)
        self.mask_from = self.find_masks(ENVS[-1], info) if self.actions.discrete else None
        self.at = 0

    @staticmethod
    def find_masks(env, info):
        if "action_mask" in info:
            return "info"
        return "method" if env.has_wrapper_attr("action_masks") else None

    def describe(self):
        env = ENVS[0]
        part = lambda name: [value for _, leaf in self.leaves for value in getattr(leaf, name)]
        spec = env.spec
        entry = str(spec.entry_point) if spec else ""
        return {
            "obs": {"names": part("names"), "low": part("low"), "high": part("high")},
            "action": self.actions.describe(env.action_space),
            "has_mask": self.mask_from is not None,
            "max_episode_steps": spec.max_episode_steps if spec else None,
            "is_gymnasium_s": entry.startswith("gymnasium.envs."),
            "not_saved_because": reason_not_to_save(env),
            "versions": {
                "python": sys.version.split()[0],
                "gymnasium": gymnasium.__version__,
                "numpy": np.__version__,
            },
        }

    def attach(self, layout):
        """Maps the shared memory; rows of this worker only."""
        memory = np.memmap(layout["path"], dtype=np.uint8, mode="r+")
        rows = slice(layout["first_row"], layout["first_row"] + len(ENVS))

        def slab(name, dtype):
            offset, columns = layout[name]
            size = layout["n_envs"] * columns * np.dtype(dtype).itemsize
            # A plain array: indexing a `memmap` is several times slower.
            whole = memory[offset : offset + size].view(np.ndarray).view(dtype)
            return whole.reshape(layout["n_envs"], columns)[rows]

        self.rows = slab("actions", np.int64 if self.actions.discrete else np.float32)
        self.seeds = slab("seeds", np.int64)[:, 0]
        self.rewards = slab("rewards", np.float64)[:, 0]
        self.flags = slab("flags", np.uint8)[:, 0]
        self.next_obs, self.obs = self.views(slab("next_obs", np.float32)), self.views(slab("obs", np.float32))
        self.next_masks, self.masks = slab("next_masks", np.float32), slab("masks", np.float32)
        if len(self.leaves) == 1 and self.leaves[0][0] == ():
            self.put = self.leaves[0][1].put
        else:
            self.put = self.put_parts
        self.bind()

    def views(self, slab):
        """For each row, where its observation is written: one array, or one for each leaf."""
        views = []
        for row in slab:
            parts, first = [], 0
            for _, leaf in self.leaves:
                parts.append(leaf.view(row[first : first + leaf.width]))
                first += leaf.width
            views.append(parts)
        whole = len(self.leaves) == 1 and self.leaves[0][0] == ()
        return [parts[0] for parts in views] if whole else views

    def put_parts(self, views, obs):
        for view, (path, leaf) in zip(views, self.leaves):
            value = obs
            for key in path:
                value = value[key]
            leaf.put(view, value)

    def bind(self):
        self.steps = [env.step for env in ENVS]

    def step(self):
        put, rewards, flags, next_obs = self.put, self.rewards, self.flags, self.next_obs
        masked = self.mask_from is not None
        flags.fill(0)
        self.at = 0
        for at, (step, action) in enumerate(zip(self.steps, self.actions.of(self.rows))):
            self.at = at
            obs, reward, terminated, truncated, info = step(action)
            put(next_obs[at], obs)
            rewards[at] = reward
            if masked:
                self.put_mask(self.next_masks[at], at, info, terminated)
            if terminated or truncated:
                flags[at] = (TERMINATED if terminated else 0) | (TRUNCATED if truncated else 0)
                self.begin(at)

    def begin(self, at):
        """Starts an episode with the seed that the parent chose for it."""
        self.at = at
        obs, info = ENVS[at].reset(seed=int(self.seeds[at]))
        self.put(self.obs[at], obs)
        if self.mask_from is not None:
            self.put_mask(self.masks[at], at, info, False)

    def put_mask(self, view, at, info, terminated):
        if self.mask_from == "method":
            mask = ENVS[at].get_wrapper_attr("action_masks")()
        elif "action_mask" in info:
            mask = info["action_mask"]
        elif terminated:
            # Nobody acts after the end.
            mask = np.ones(view.shape)
        else:
            refuse_space("an info has no `action_mask`, though that of the first reset had one")
        mask = np.concatenate([np.ravel(part) for part in mask]) if isinstance(mask, (list, tuple)) else np.ravel(mask)
        if mask.shape != view.shape:
            refuse_space(f"a mask has {mask.size} entries for {view.size} actions")
        view[:] = mask != 0

    def reset(self):
        for at in range(len(ENVS)):
            self.begin(at)

    def save(self):
        parts = []
        for env in ENVS:
            try:
                state, saved = save_env(env), 1
            except Exception as error:
                state, saved = f"{type(error).__name__}: {error}".encode(), 0
            parts.append(struct.pack("<BQ", saved, len(state)) + state)
        return b"".join(parts)

    def load(self, body):
        at = 0
        for index in range(len(ENVS)):
            self.at = index
            (size,) = struct.unpack_from("<Q", body, at)
            at += 8
            loaded = pickle.loads(body[at : at + size])
            at += size
            ENVS[index].close()
            ENVS[index] = loaded
        self.bind()


# ---- The loop


def report(error, at):
    text = f"{type(error).__name__}: {error}"
    return {"kind": "raised", "message": text, "traceback": traceback.format_exc(), "env": at}


def main():
    # Ctrl-C ends the parent, which may still need the environments to finish its step.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    worker = None
    send(b"brasa-gym\n")
    while True:
        command = os.read(COMMANDS, 1)
        try:
            if command == b"s":
                worker.step()
                send(b"d")
            elif command == b"":
                quit_worker()
            elif command == b"r":
                worker.reset()
                send(b"d")
            elif command == b"o":
                worker.begin(struct.unpack("<Q", receive_body())[0])
                send(b"d")
            elif command == b"c":
                config = json.loads(receive_body())
                # For errors before there is a worker.
                worker = None
                worker = create(config)
                send_body(b"h", json.dumps(worker.describe(), allow_nan=False).encode())
            elif command == b"a":
                worker.attach(json.loads(receive_body()))
                send(b"d")
            elif command == b"v":
                send_body(b"v", worker.save())
            elif command == b"l":
                worker.load(receive_body())
                send(b"d")
            else:
                raise RuntimeError(f"unknown command {command}")
        except Exception as error:
            at = worker.first_env + worker.at if worker is not None else None
            told = {**error.report, "env": at} if isinstance(error, Refused) else report(error, at)
            send_body(b"e", json.dumps(told).encode())


main()
