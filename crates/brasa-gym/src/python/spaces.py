"""Spaces of Gymnasium as rows of numbers. A leaf writes one part of a row of observations, or reads one part of a row of actions."""


class BoxLeaf:
    """Numbers as they are, row-major: `Box` and `MultiBinary`."""

    def __init__(self, name, shape, low, high, dtype=None):
        self.shape = shape
        self.dtype, self.is_bytes = dtype, dtype in (np.uint8, np.bool_)
        self.width = math.prod(shape)
        self.name = name
        self.low, self.high = low, high

    @property
    def names(self):
        return [join(self.name, *index) for index in np.ndindex(self.shape)]

    def view(self, part):
        return part.reshape(self.shape)

    def put(self, view, value):
        # A smaller array would be repeated by the assignment.
        if getattr(value, "shape", None) != self.shape:
            value = np.asarray(value)
            if value.shape != self.shape:
                refuse_space(f"an observation has the shape {value.shape}, its space {self.shape}")
        if self.is_bytes and view.dtype == np.uint8 and getattr(value, "dtype", None) not in (np.uint8, np.bool_):
            value = self.whole(value)
        view[...] = value

    def whole(self, value):
        """Bytes that an environment returns as other numbers, against the promise of its space."""
        value = np.asarray(value)
        whole = value.astype(np.uint8)
        if (whole != value).any():
            refuse_space(f"an observation has numbers other than 0 to 255, and its space is one of {self.dtype}")
        return whole


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
        low, high = finite_or_none(space.low, what), finite_or_none(space.high, what)
        return [(path, BoxLeaf(name, space.shape, low, high, space.dtype))]
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
            exact = start == 0 and space.dtype == np.int64
            # Whoever iterates over it gets copies.
            self.many = lambda rows: rows[:, 0] if exact else rows[:, 0].astype(space.dtype) + space.dtype.type(start)
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
        self.choices = [leaf for leaf in self.leaves if leaf.heads is not None]
        self.numbers = [leaf for leaf in self.leaves if leaf.heads is None]
        self.width = sum(leaf.width for leaf in self.leaves)
        # A row has the choices first.
        self.first_of, first = {}, 0
        for leaf in self.choices + self.numbers:
            self.first_of[leaf] = first
            first += leaf.width

    def describe(self, space):
        heads = [head for leaf in self.choices for head in leaf.heads]
        if not self.numbers:
            return {"discrete": heads[0]} if kind_of(space) == "Discrete" else {"multi_discrete": heads}
        part = lambda name: [value for leaf in self.numbers for value in getattr(leaf, name)]
        box = {"names": part("names"), "low": part("low"), "high": part("high")}
        return {"hybrid": [heads, box]} if heads else {"box": box}

    def of(self, rows):
        """The actions of all rows."""
        if self.is_leaf:
            return self.leaves[0].many(rows)
        values = []
        for leaf in self.leaves:
            first = self.first_of[leaf]
            part = rows[:, first : first + leaf.width]
            values.append(leaf.many(part if leaf.heads is None else part.astype(np.int64, copy=False)))
        return [self.tree(values, env) for env in range(len(rows))]
