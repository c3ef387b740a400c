"""SAC in Stable-Baselines3: env steps per second on Pendulum-v1, or updates per second on a filled buffer.

    python benches/peers/sb3_sac.py --task pendulum [--steps 10000] [--seed 0] [--threads 1]
    python benches/peers/sb3_sac.py --task synthetic [--updates 2000] [--seed 0] [--threads 1]

Prints one line of JSON. On Pendulum both networks have two layers of 64, a batch has 100 rows, and every env step is
followed by one update; the clock runs from the first update to the last, over env steps and updates. The synthetic
task has 17 observations and 6 actions, layers of 256 and batches of 256; the clock runs over `train` alone.
"""

import time

from timed import arguments, evaluated, result


def more(parser):
    parser.add_argument("--task", choices=["pendulum", "synthetic"], required=True)
    parser.add_argument("--updates", type=int, default=2_000, help="timed updates of the synthetic task")


def main():
    found = arguments(__doc__, 10_000, more)
    import gymnasium
    import numpy
    from stable_baselines3 import SAC
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.logger import configure
    from stable_baselines3.common.vec_env import DummyVecEnv

    class Dummy(gymnasium.Env):
        """Random observations and rewards; an episode never ends by itself."""

        observation_space = gymnasium.spaces.Box(-numpy.inf, numpy.inf, (17,), numpy.float32)
        action_space = gymnasium.spaces.Box(-1.0, 1.0, (6,), numpy.float32)

        def reset(self, seed=None, options=None):
            super().reset(seed=seed)
            return self.np_random.standard_normal(17, dtype=numpy.float32), {}

        def step(self, action):
            obs = self.np_random.standard_normal(17, dtype=numpy.float32)
            return obs, float(self.np_random.standard_normal()), False, False, {}

    class Clock(BaseCallback):
        """Starts when learning starts."""

        def _on_step(self):
            if self.num_timesteps == self.model.learning_starts + 1:
                self.begin = time.perf_counter()
            return True

    def learner(environment, **settings):
        return SAC("MlpPolicy", environment, learning_starts=100, seed=found.seed, device="cpu", verbose=0, **settings)

    task = f"SAC, {found.task}"
    if found.task == "pendulum":
        environment = make_vec_env("Pendulum-v1", n_envs=1, seed=found.seed)
        model, clock = learner(environment, batch_size=100, policy_kwargs={"net_arch": [64, 64]}), Clock()
        model.learn(total_timesteps=found.steps, callback=clock)
        seconds = time.perf_counter() - clock.begin
        rate = (found.steps - model.learning_starts) / seconds
        own = evaluated(model, make_vec_env("Pendulum-v1", n_envs=20, seed=1000 + found.seed))
        result(task, model, seconds, found, **own, env_steps_per_second=rate, batch_size=model.batch_size)
        return
    network = {"net_arch": [256, 256]}
    model = learner(DummyVecEnv([Dummy]), batch_size=256, policy_kwargs=network, buffer_size=10_000)
    model.learning_starts = 10_001  # fill the buffer, learn nothing
    model.learn(total_timesteps=10_000)
    model.set_logger(configure(None, []))
    model.train(gradient_steps=50, batch_size=model.batch_size)
    begin = time.perf_counter()
    model.train(gradient_steps=found.updates, batch_size=model.batch_size)
    seconds = time.perf_counter() - begin
    own = {"updates": found.updates, "updates_per_second": found.updates / seconds, "env_steps_per_second": None}
    result(task, model, seconds, found, **own, batch_size=model.batch_size)


if __name__ == "__main__":
    main()
