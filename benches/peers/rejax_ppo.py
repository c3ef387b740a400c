"""PPO on CartPole-v1 in rejax: the whole loop, environments included, is one compiled program.

    python benches/peers/rejax_ppo.py [--steps 400000] [--n-envs 4] [--seed 0]

Prints one line of JSON. The program is called twice with other keys; the clock runs over the second call, which compiles nothing.
Settings are those of `benches/configs/cart-pole-ppo.toml`: 128 steps, 4 epochs of 4 minibatches, two layers of 64 with tanh.
"""

import argparse
import importlib.metadata
import json
import os
import platform
import time


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=400_000)
    parser.add_argument("--n-envs", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    # One thread; pin the process to a core as well.
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    os.environ["JAX_PLATFORMS"] = "cpu"

    import jax
    from rejax import PPO
    from rejax.evaluate import evaluate

    learner = PPO.create(
        env="CartPole-v1",
        num_envs=arguments.n_envs,
        num_steps=128,
        num_epochs=4,
        num_minibatches=4,
        total_timesteps=arguments.steps,
        eval_freq=arguments.steps,
        skip_initial_evaluation=True,
        learning_rate=3e-4,
        gamma=0.99,
        gae_lambda=0.95,
        clip_eps=0.2,
        ent_coef=0.0,
        vf_coef=0.5,
        max_grad_norm=0.5,
        agent_kwargs={"hidden_layer_sizes": (64, 64), "activation": "tanh"},
    )
    # Evaluation is no training.
    learner = learner.replace(eval_callback=lambda *_: ())
    train = jax.jit(learner.train)
    jax.block_until_ready(train(jax.random.PRNGKey(arguments.seed + 1000)))
    begin = time.perf_counter()
    state, _ = jax.block_until_ready(train(jax.random.PRNGKey(arguments.seed)))
    seconds = time.perf_counter() - begin

    def best(obs, _):
        return learner.actor.apply(state.actor_ts.params, obs[None], method=lambda net, obs: net._action_dist(obs).mode())[0]

    _, returns = evaluate(best, jax.random.PRNGKey(1000 + arguments.seed), learner.env, learner.env_params, num_seeds=20)
    versions = {name: importlib.metadata.version(name) for name in ("rejax", "gymnax", "jax", "flax")}
    result = {
        "library": "rejax",
        "task": "PPO on CartPole-v1",
        "env_steps": arguments.steps,
        "seconds": seconds,
        "env_steps_per_second": arguments.steps / seconds,
        "n_envs": arguments.n_envs,
        "seed": arguments.seed,
        "eval_return": float(returns.mean()),
        "eval_episodes": len(returns),
        "versions": {**versions, "python": platform.python_version()},
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
