#!/usr/bin/env bash
# Plans and short runs of every recipe for a GPU, on a processor: `scripts/run_recipes.sh target/debug/brasa`.
set -euo pipefail
brasa=$(realpath "$1")
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
export brasa folder

# One line with the time, and what was printed if it fails.
run() {
  local task=$1 card=$2 recipe=$3 started=$SECONDS
  local out="$folder/$task-$card-$(basename "$(dirname "$recipe")")-$(basename "$recipe" .toml)"
  local command=("$brasa" plan "$recipe" --device "$card") # The exit code says whether it fits.
  if [ "$task" = train ]; then
    # More steps than those before the first update of off-policy learners. Updates of many users are slow on a processor.
    local steps=2500
    if [[ $recipe == */uara.toml ]]; then
      steps=600
    fi
    command=("$brasa" train "$recipe" --steps "$steps" --episodes 2 --device cpu --quiet --out "$out.run")
  fi
  if "${command[@]}" >"$out.log" 2>&1; then
    echo "$task $recipe on $card: $((SECONDS - started)) s"
  else
    echo "FAILED: ${command[*]}" >&2
    cat "$out.log" >&2
    return 1
  fi
}
export -f run

tasks() {
  # Those that take longest come first.
  for card in rtx-4060 rtx-5090 rtx-4060-laptop t4 v100; do
    for recipe in configs/"$card"/*.toml; do
      echo train "$card" "$recipe"
      echo plan "$card" "$recipe"
    done
    for recipe in configs/published/"$card"-[a-z]*.toml; do
      # The pattern of the RTX 4060 finds those of the laptop as well.
      if [ ! -e "$recipe" ] || [[ $card == rtx-4060 && $recipe == configs/published/rtx-4060-laptop-* ]]; then
        continue
      fi
      # Networks of three million weights, measured for a minute each.
      if [[ $recipe == configs/published/*-evacuation-* && -z ${BRASA_SLOW-} ]]; then
        echo "SKIPPED: plan $recipe on $card takes a minute; set BRASA_SLOW=1 to run it" >&2
        continue
      fi
      echo plan "$card" "$recipe"
    done
  done
}

# A recipe uses little more than one core: as many at once as there are.
tasks | xargs -P "$(nproc 2>/dev/null || echo 2)" -L 1 bash -c 'run "$@"' run
