"""A worker of brasa-gym: it owns a range of the environments of a batch, and steps them one after the other.

The parent sends commands on the first pipe, the worker answers on the second one. A command is one byte; some have a body, which
follows its length (8 bytes, little-endian). A reply has the same form, with its number behind its first byte (4 bytes, little-endian): replies
are counted from 1 in the order of the commands.

    command                      body                         reply
    c  create the environments   JSON: id, kwargs, range      h and their description as JSON
    a  map the shared memory     JSON: path and offsets       d
    s  step                                                   d
    r  reset all                                              d
    o  reset one                 its index, 8 bytes           d
    v  save                                                   v and the saved states
    l  load                      saved states                 d
    p  picture of the first one                               p, width and height (4 bytes each), and its pixels

Every command may be answered by `e` and an error as JSON. Observations, rewards and flags are written to the shared memory. The end
of the first pipe ends the worker.
"""


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
# Largest width and height of a frame, as `brasa_env::Frame::MAX_SIDE`.
MAX_SIDE = 4096


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
    team = is_team(config["id"])
    kwargs = config["kwargs"] if team else {"disable_env_checker": True, **config["kwargs"]}
    if config["render"]:
        kwargs["render_mode"] = "rgb_array"
    if config["max_episode_steps"] is not None:
        if team:
            refuse_limit()
        kwargs["max_episode_steps"] = config["max_episode_steps"]
    wrappers = []
    for wrapper in config["wrappers"]:
        module, _, name = wrapper["name"].partition(":")
        wrappers.append((getattr(import_named(module), name), wrapper["kwargs"]))
    has_raw_rewards = bool(wrappers) and not team
    if has_raw_rewards:
        define_raw_rewards()
    for _ in range(*config["envs"]):
        env = (make_team if team else make)(config["id"], kwargs)
        if has_raw_rewards:
            env = RawRewards(env)
        for wrapper, arguments in wrappers:
            env = wrapper(env, **arguments)
        ENVS.append(env)
    return (TeamWorker if team else Worker)(config["envs"][0], config["render"], has_raw_rewards)


def define_raw_rewards():
    """A wrapper inside those of the user: returns are those of the environment, whatever its wrappers make of the rewards."""
    global RawRewards

    class RawRewards(gymnasium.Wrapper):
        since_read = 0.0

        def step(self, action):
            result = self.env.step(action)
            self.since_read += number(result[1])
            return result

        def reset(self, **arguments):
            result = self.env.reset(**arguments)
            # Steps that a wrapper took for a reset belong to no episode.
            self.since_read = 0.0
            return result

    # Pickles name it.
    RawRewards.__qualname__ = "RawRewards"


def number(reward):
    if type(reward) is not float and np.shape(reward) != ():
        refuse_space(f"a reward has the shape {np.shape(reward)}, it must be one number")
    return reward


def raw_rewards_of(env):
    while not isinstance(env, RawRewards):
        env = env.env
    return env


def import_named(module):
    """A module, or a file as a module."""
    try:
        return import_file(module) if module.endswith(".py") else importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise Refused("missing", str(error), package=(error.name or module).split(".")[0])


def import_file(path):
    # Not the name of the file: it may be that of a package which the file wraps. Saved environments name it.
    name = "file_" + os.path.basename(path)[: -len(".py")]
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def make(name, kwargs):
    try:
        return gymnasium.make(name, **kwargs)
    except TypeError as error:
        # Its constructor takes no such argument.
        if kwargs.get("render_mode") == "rgb_array" and "render_mode" in str(error):
            refuse_render(str(error))
        raise
    except gymnasium.error.UnregisteredEnv as error:
        raise Refused("unknown_id", str(error))
    except gymnasium.error.DependencyNotInstalled as error:
        raise Refused("missing", str(error), package=None)
    except ModuleNotFoundError as error:
        raise Refused("missing", str(error), package=(error.name or "").split(".")[0] or None)


def refuse_render(reason):
    refuse_space(f"a video needs `render_mode=\"rgb_array\"`, which this environment does not support: {reason}")


class Worker:
    # One agent without a name.
    agents = [""]

    def __init__(self, first_env, renders, has_raw_rewards):
        self.first_env = first_env
        self.renders = renders
        self.has_raw_rewards = has_raw_rewards
        # A frame of the first environment at the end of its last episode, until its next step.
        self.frame = None
        # Index of the environment that is in use, for errors.
        self.at = 0
        obs_space, self.action_space = self.spaces_of(ENVS[0])
        self.leaves = obs_leaves(obs_space, (), "")
        self.actions = Actions(self.action_space)
        # Every environment is reset once before anything is known of masks and of saving.
        for self.at, env in enumerate(ENVS):
            obs, info = env.reset(seed=0)
        self.mask_from = self.find_masks(ENVS[-1], info) if self.actions.choices else None
        self.at = 0
        if renders:
            # An environment that cannot is found out before anything is written.
            self.render()

    def spaces_of(self, env):
        return env.observation_space, env.action_space

    @staticmethod
    def find_masks(env, info):
        if "action_mask" in info:
            return "info"
        return "method" if env.has_wrapper_attr("action_masks") else None

    def shape(self):
        """The shape of an observation that is one array of two or more dimensions, such as an image."""
        arrays = [leaf.shape for _, leaf in self.leaves if isinstance(leaf, BoxLeaf)]
        return arrays[0] if len(self.leaves) == len(arrays) == 1 and len(arrays[0]) > 1 else ()

    def has_bytes(self):
        """Whether all numbers of an observation are bytes or flags."""
        return all(isinstance(leaf, BoxLeaf) and leaf.is_bytes for _, leaf in self.leaves)

    def describe(self):
        env = ENVS[0]
        part = lambda name: [value for _, leaf in self.leaves for value in getattr(leaf, name)]
        spec, shape = getattr(env, "spec", None), self.shape()
        entry = str(spec.entry_point) if spec else ""
        return {
            # The place of a pixel is its name.
            "obs": {
                "names": [] if shape else part("names"),
                "low": part("low"),
                "high": part("high"),
                "shape": shape,
                "bytes": self.has_bytes(),
            },
            "action": self.actions.describe(self.action_space),
            "n_agents": len(self.agents),
            "has_raw_rewards": self.has_raw_rewards,
            "has_mask": self.mask_from is not None,
            "max_episode_steps": spec.max_episode_steps if spec else None,
            "is_gymnasium_s": entry.startswith("gymnasium.envs."),
            "not_saved_because": reason_not_to_save(env),
            "render_fps": self.frames_per_sec() if self.renders else None,
            "versions": {
                "python": sys.version.split()[0],
                "gymnasium": gymnasium.__version__,
                "numpy": np.__version__,
            },
        }

    @staticmethod
    def frames_per_sec():
        try:
            rate = float(ENVS[0].metadata.get("render_fps"))
        except (AttributeError, TypeError, ValueError):
            return None
        return rate if math.isfinite(rate) else None

    def render(self):
        """A frame of the first environment."""
        self.at = 0
        try:
            frame = ENVS[0].render()
        except gymnasium.error.DependencyNotInstalled as error:
            raise Refused("missing", str(error), package=None)
        if frame is None:
            modes = (getattr(ENVS[0], "metadata", None) or {}).get("render_modes", [])
            refuse_render(f"`render()` returned nothing, its modes are {modes}")
        if not isinstance(frame, np.ndarray) or frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[2] != 3:
            what = f"{frame.dtype} of shape {frame.shape}" if isinstance(frame, np.ndarray) else type(frame).__name__
            refuse_render(f"`render()` must return an array of uint8 with the shape (height, width, 3), got {what}")
        if max(frame.shape) > MAX_SIDE:
            refuse_space(f"a frame must have at most {MAX_SIDE} pixels in each direction, got the shape {frame.shape}")
        return frame

    def picture(self):
        frame = self.render() if self.frame is None else self.frame
        height, width, _ = frame.shape
        return struct.pack("<II", width, height) + frame.tobytes()

    def attach(self, layout):
        """Maps the shared memory; rows of this worker only."""
        memory = np.memmap(layout["path"], dtype=np.uint8, mode="r+")

        def slab(name, dtype):
            offset, columns, rows_per_env = layout[name]
            n_rows, first = layout["n_envs"] * rows_per_env, layout["first_env"] * rows_per_env
            size = n_rows * columns * np.dtype(dtype).itemsize
            # A plain array: indexing a `memmap` is several times slower.
            whole = memory[offset : offset + size].view(np.ndarray).view(dtype)
            return whole.reshape(n_rows, columns)[first : first + len(ENVS) * rows_per_env]

        self.rows = slab("actions", np.float32 if self.actions.numbers else np.int64)
        self.seeds = slab("seeds", np.int64)[:, 0]
        self.rewards = slab("rewards", np.float64)[:, 0]
        self.raw_rewards = slab("raw_rewards", np.float64)
        self.flags = slab("flags", np.uint8)[:, 0]
        of_obs = np.uint8 if self.has_bytes() else np.float32
        self.next_obs, self.obs = self.views(slab("next_obs", of_obs)), self.views(slab("obs", of_obs))
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
        self.loop = list(zip(range(len(ENVS)), [env.step for env in ENVS], self.next_obs))
        self.raw = [raw_rewards_of(env) for env in ENVS] if self.has_raw_rewards else None

    def step(self):
        # The parent has cleared the flags.
        put, rewards, masked = self.put, self.rewards, self.mask_from is not None
        self.frame = None
        for (self.at, step, view), action in zip(self.loop, self.actions.of(self.rows)):
            obs, reward, terminated, truncated, info = step(action)
            put(view, obs)
            rewards[self.at] = number(reward)
            if self.raw:
                raw = self.raw[self.at]
                self.raw_rewards[self.at, 0], raw.since_read = raw.since_read, 0.0
            if masked:
                self.put_mask(self.next_masks[self.at], self.at, info, terminated)
            if terminated or truncated:
                if self.renders and self.at == 0:
                    self.frame = self.render()
                self.flags[self.at] = (TERMINATED if terminated else 0) | (TRUNCATED if truncated else 0)
                self.begin(self.at)

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
        self.frame = None

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
