// PPO on Pendulum-v1 in RLtools: four environments with 1,024 steps each, batches of 256 rows, two epochs, both networks with two layers of 64
// ReLU units. Prints one line of JSON; see ../README.md for how to build it. The clock runs over all rollouts and updates after the first one,
// without the evaluation.

#include <rl_tools/operations/cpu_mux.h>

#include <rl_tools/rl/environments/pendulum/operations_cpu.h>

#include <rl_tools/nn/optimizers/adam/instance/operations_generic.h>
// Without this header the layers have no BLAS, silently: five times slower.
#include <rl_tools/nn/operations_cpu_mux.h>
#include <rl_tools/nn/layers/standardize/operations_generic.h>
#include <rl_tools/nn_models/mlp_unconditional_stddev/operations_generic.h>
#include <rl_tools/nn_models/sequential/operations_generic.h>
#include <rl_tools/nn/optimizers/adam/operations_generic.h>

#include <rl_tools/rl/components/on_policy_runner/operations_generic.h>
#include <rl_tools/rl/algorithms/ppo/operations_generic.h>
#include <rl_tools/rl/algorithms/ppo/loop/core/config.h>
#include <rl_tools/rl/algorithms/ppo/loop/core/operations_generic.h>
#include <rl_tools/rl/utils/evaluation/operations_generic.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#ifndef STEPS
#define STEPS 400000
#endif

#ifdef RL_TOOLS_BACKEND_ENABLE_OPENBLAS
extern "C" void openblas_set_num_threads(int);  // its header does not go with the one of RLtools
#endif

namespace rlt = rl_tools;

using Device = rlt::devices::DEVICE_FACTORY<>;
using Rng = Device::SPEC::RANDOM::ENGINE<>;
using Index = Device::index_t;
using Types = rlt::numeric_types::Policy<float>;
using Pendulum = rlt::rl::environments::Pendulum<rlt::rl::environments::pendulum::Specification<float, Index>>;

struct Parameters: rlt::rl::algorithms::ppo::loop::core::DefaultParameters<Types, Index, Pendulum> {
    static constexpr Index N_ENVIRONMENTS = 4;
    static constexpr Index ON_POLICY_RUNNER_STEPS_PER_ENV = 1024;
    static constexpr Index BATCH_SIZE = 256;
    static constexpr Index STEP_LIMIT = STEPS / (N_ENVIRONMENTS * ON_POLICY_RUNNER_STEPS_PER_ENV);  // iterations
    static constexpr Index EPISODE_STEP_LIMIT = 200;
    struct OPTIMIZER_PARAMETERS: rlt::nn::optimizers::adam::DEFAULT_PARAMETERS_PYTORCH<Types> {
        static constexpr float ALPHA = 1e-3;
    };
    struct PPO_PARAMETERS: rlt::rl::algorithms::ppo::DefaultParameters<Types, Index, BATCH_SIZE> {
        static constexpr float ACTION_ENTROPY_COEFFICIENT = 0.0;
        static constexpr Index N_EPOCHS = 2;
        static constexpr float GAMMA = 0.9;
        static constexpr float INITIAL_ACTION_STD = 1.0;
    };
};

using Config = rlt::rl::algorithms::ppo::loop::core::Config<Types, Index, Rng, Pendulum, Parameters>;
using State = Config::State<Config>;

constexpr Index EPISODES = 20;
using Result = rlt::rl::utils::evaluation::Result<
    rlt::rl::utils::evaluation::Specification<Types, Index, Pendulum, EPISODES, Pendulum::EPISODE_STEP_LIMIT>>;

int main(int argc, char** argv) {
    const Index seed = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 0;
    const char* backend = "generic";
#ifdef RL_TOOLS_BACKEND_ENABLE_OPENBLAS
    openblas_set_num_threads(1);
    backend = "openblas";
#endif
    Device device;
    rlt::init(device);
    static State state;
    rlt::malloc(device, state);
    rlt::init(device, state, seed);

    rlt::step(device, state);
    const Index first = state.step;
    const auto begin = std::chrono::steady_clock::now();
    while (state.step < Parameters::STEP_LIMIT) {
        rlt::step(device, state);
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const double steps = (double)(state.step - first) * Config::ENVIRONMENT_STEPS_PER_LOOP_STEP;

    Pendulum pendulum;
    rlt::rl::environments::DummyUI ui;
    Result result;
    Rng rng;
    rlt::malloc(device, rng);
    rlt::init(device, rng, 1000 + seed);
    rlt::Mode<rlt::mode::Evaluation<>> mode;
    rlt::evaluate(device, pendulum, ui, rlt::get_actor(state), result, rng, mode);
    std::printf(
        "{\"library\": \"rltools\", \"task\": \"PPO, pendulum\", \"backend\": \"%s\", \"env_steps\": %.0f, \"seconds\": %.4f, "
        "\"env_steps_per_second\": %.1f, \"eval_return\": %.1f, \"eval_episodes\": %d, \"seed\": %d, \"threads\": 1, "
        "\"commit\": \"%s\", \"compiler\": \"%s\"}\n",
        backend, steps, seconds, steps / seconds, (double)result.returns_mean, (int)EPISODES, (int)seed,
        RL_TOOLS_STRINGIFY(RL_TOOLS_COMMIT_HASH), __VERSION__);
    rlt::free(device, rng);
    rlt::free(device, state);
    return 0;
}
