// SAC on Pendulum-v1 in RLtools: both networks have two layers of 64, a batch has 100 rows, and every env step after
// the first 100 is followed by one update. Prints one line of JSON; see ../README.md for how to build it. The clock
// runs over the steps that update, without the evaluation.

#include <rl_tools/operations/cpu_mux.h>

#include <rl_tools/rl/environments/pendulum/operations_cpu.h>

#include <rl_tools/nn/optimizers/adam/instance/operations_generic.h>
#include <rl_tools/nn/operations_cpu_mux.h>
#include <rl_tools/nn/layers/sample_and_squash/operations_generic.h>
#include <rl_tools/nn_models/mlp/operations_generic.h>
#include <rl_tools/nn_models/sequential/operations_generic.h>
#include <rl_tools/nn/optimizers/adam/operations_generic.h>

#include <rl_tools/rl/algorithms/sac/loop/core/config.h>
#include <rl_tools/rl/algorithms/sac/loop/core/operations_generic.h>
#include <rl_tools/rl/utils/evaluation/operations_generic.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#ifndef STEPS
#define STEPS 20000
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

struct Parameters: rlt::rl::algorithms::sac::loop::core::DefaultParameters<Types, Index, Pendulum> {
    struct SAC_PARAMETERS: rlt::rl::algorithms::sac::DefaultParameters<Types, Index, Pendulum::ACTION_DIM> {
        static constexpr Index ACTOR_BATCH_SIZE = 100;
        static constexpr Index CRITIC_BATCH_SIZE = 100;
    };
    static constexpr Index STEP_LIMIT = STEPS;
    static constexpr Index REPLAY_BUFFER_CAP = STEPS;
    static constexpr Index ACTOR_NUM_LAYERS = 3;  // with the output layer
    static constexpr Index ACTOR_HIDDEN_DIM = 64;
    static constexpr Index CRITIC_NUM_LAYERS = 3;
    static constexpr Index CRITIC_HIDDEN_DIM = 64;
};

using Config = rlt::rl::algorithms::sac::loop::core::Config<Types, Index, Rng, Pendulum, Parameters>;
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

    while (state.step < Parameters::N_WARMUP_STEPS) {
        rlt::step(device, state);
    }
    const Index first = state.step;
    const auto begin = std::chrono::steady_clock::now();
    while (state.step < STEPS) {
        rlt::step(device, state);
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

    Pendulum pendulum;
    rlt::rl::environments::DummyUI ui;
    Result result;
    Rng rng;
    rlt::malloc(device, rng);
    rlt::init(device, rng, 1000 + seed);
    rlt::Mode<rlt::mode::Evaluation<>> mode;
    rlt::evaluate(device, pendulum, ui, rlt::get_actor(state), result, rng, mode);
    std::printf(
        "{\"library\": \"rltools\", \"task\": \"SAC, pendulum\", \"backend\": \"%s\", \"env_steps\": %d, "
        "\"updates\": %d, \"seconds\": %.4f, \"env_steps_per_second\": %.1f, \"eval_return\": %.1f, "
        "\"eval_episodes\": %d, \"batch_size\": 100, \"seed\": %d, \"threads\": 1, \"commit\": \"%s\", "
        "\"compiler\": \"%s\"}\n",
        backend, STEPS, (int)(STEPS - first), seconds, (STEPS - first) / seconds, (double)result.returns_mean,
        (int)EPISODES, (int)seed, RL_TOOLS_STRINGIFY(RL_TOOLS_COMMIT_HASH), __VERSION__);
    rlt::free(device, rng);
    rlt::free(device, state);
    return 0;
}
