"""Steps per second of PufferLib's CartPole, which is written in C, with random actions, as one line of JSON.

    PYTHONPATH=pufferlib-3.0.0 python benches/peers/pufferlib_steps.py [--n-envs 1024] [--seconds 3]

One call steps all environments in one thread. PufferLib resets an environment within the call of its last step. Its episodes end after 200 steps.
"""

import os
import tempfile

from timed import cart_poles


def make(n_envs, seed, generator):
    import numpy

    # PufferLib puts a link into the working directory when it is imported.
    folder = os.getcwd()
    with tempfile.TemporaryDirectory() as other:
        os.chdir(other)
        from pufferlib.ocean.cartpole.cartpole import Cartpole

        os.chdir(folder)

    # Statistics of episodes, which pass over all environments, are only read at the end.
    envs = Cartpole(num_envs=n_envs, report_interval=1 << 62, seed=seed)
    actions = generator.integers(2, size=(64, n_envs)).astype(numpy.float32)
    envs.reset(seed)

    def step(i):
        envs.step(actions[i])
        return n_envs

    return step


if __name__ == "__main__":
    cart_poles(__doc__, "pufferlib", make)
