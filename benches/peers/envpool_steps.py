"""Steps per second of EnvPool's CartPole-v1 with random actions and one thread, as one line of JSON.

    python benches/peers/envpool_steps.py [--n-envs 1024] [--seconds 3]

All environments step at each call. EnvPool resets an environment at the call after its last step. This call is not counted as its step.
"""

from timed import cart_poles


def make(n_envs, seed, generator):
    import envpool
    import numpy

    envs = envpool.make("CartPole-v1", env_type="gymnasium", num_envs=n_envs, num_threads=1, seed=seed)
    actions = generator.integers(2, size=(64, n_envs), dtype=numpy.int32)
    envs.reset()

    def step(i):
        _, _, terminated, truncated, _ = envs.step(actions[i])
        return n_envs - int(numpy.count_nonzero(terminated | truncated))

    return step


if __name__ == "__main__":
    cart_poles(__doc__, "envpool", make)
