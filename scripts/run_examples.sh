#!/usr/bin/env bash
# Runs every example with few steps, from the programs of a build: `scripts/run_examples.sh [target/debug]`.
#
# `scripts/check_tutorials.py` runs the example `room` instead. `cargo test --workspace` builds the examples; so does `cargo build --workspace --examples --bins`.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$root" && realpath "${1:-target/debug}")
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
# Examples write their runs here.
cd "$folder"

# run NAME ARGUMENTS...
run() {
  local name=$1 started=$SECONDS
  shift
  if ! "$build/examples/$name" "$@" >"$name.log" 2>&1; then
    cat "$name.log" >&2
    echo "FAILED: example $name $*" >&2
    exit 1
  fi
  if ! [ -s "$name.log" ]; then
    echo "FAILED: example $name prints nothing" >&2
    exit 1
  fi
  echo "example $name $*: $((SECONDS - started)) s, $(tail -n 1 "$name.log")"
}

run train_cart_pole 2000
run train_cart_pole_dqn 1500
run train_pendulum_sac 300
run train_pendulum_td3 1200
run train_evacuation 1024
run train_network_team 100
run train_own_environment 20000
# A second start resumes the run, here one that has all its steps.
run train_own_environment 20000
grep -q 'has all its steps' train_own_environment.log
run environment_as_tensors 8192
run own_network 1024
run own_recurrent 2048
run own_team 5000
run own_environment
run district_rules
run network_rules 2
run rollout_and_gae
run replay
run train_cart_pole_a2c 2000
run graph_attention 30
run microgrid_rule 1
run device_profile
run own_dqn 1500
run own_ppo 8192
"$build/brasa" train "$root/configs/cart-pole-ppo.toml" --steps 2048 --out "$folder/run" --quiet >/dev/null
run act_with_loaded_policy "$folder/run"
