"""Environments of PettingZoo's parallel API: several agents act at the same time, and each has a row."""


def is_team(name):
    return name.endswith(":parallel_env")


def refuse_limit():
    refuse_space("`max_episode_steps` must be left out: environments of PettingZoo have it in `kwargs`, as `max_cycles`")


def make_team(name, kwargs):
    module, _, function = name.rpartition(":")
    made = import_named(module)
    if not hasattr(made, function):
        raise Refused("unknown_id", f"the module `{module}` has no function `{function}`")
    return getattr(made, function)(**kwargs)


class TeamWorker(Worker):
    """Agents that left the episode before its end observe zeros, have rewards of 0, and act without effect."""

    def spaces_of(self, env):
        self.agents = list(env.possible_agents)
        first = self.agents[0]
        for agent in self.agents:
            for kind in ("observation_space", "action_space"):
                if getattr(env, kind)(agent) != getattr(env, kind)(first):
                    refuse_space(f"`{first}` and `{agent}` have different spaces (`{kind}`); agents share one policy: pad them")
        return env.observation_space(first), env.action_space(first)

    @staticmethod
    def find_masks(env, infos):
        return "info" if any("action_mask" in info for info in infos.values()) else None

    def bind(self):
        self.raw = None

    def put_agents(self, views, masks, obs, infos):
        for agent, row in self.rows_of(self.at):
            if agent in obs:
                self.put(views[row], obs[agent])
            else:
                for view in views[row] if isinstance(views[row], list) else [views[row]]:
                    view[...] = 0.0
            if self.mask_from is not None:
                self.put_mask(masks[row], self.at, infos.get(agent, {}), agent not in ENVS[self.at].agents)

    def rows_of(self, at):
        return zip(self.agents, range(at * len(self.agents), (at + 1) * len(self.agents)))

    def step(self):
        # The parent has cleared the flags.
        self.frame = None
        actions = self.actions.of(self.rows)
        for self.at, env in enumerate(ENVS):
            acting = set(env.agents)
            chosen = {agent: actions[row] for agent, row in self.rows_of(self.at) if agent in acting}
            obs, rewards, terminations, truncations, infos = env.step(chosen)
            self.put_agents(self.next_obs, self.next_masks, obs, infos)
            for agent, row in self.rows_of(self.at):
                self.rewards[row] = number(rewards.get(agent, 0.0))
            if not env.agents:
                if self.renders and self.at == 0:
                    self.frame = self.render()
                for agent, row in self.rows_of(self.at):
                    # An agent that left before the last step was ended by the rules.
                    is_cut = truncations.get(agent, False) and not terminations.get(agent, False)
                    self.flags[row] = TRUNCATED if is_cut else TERMINATED
                self.begin(self.at)

    def begin(self, at):
        self.at = at
        obs, infos = ENVS[at].reset(seed=int(self.seeds[at]))
        self.put_agents(self.obs, self.masks, obs, infos)
