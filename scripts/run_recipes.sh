#!/usr/bin/env bash
# Plans and short runs of every recipe for a GPU, on a processor: `scripts/run_recipes.sh target/debug/brasa`.
set -euo pipefail
brasa=$(realpath "$1")
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
for card in rtx-4060-laptop rtx-4060 rtx-5090 t4 v100; do
  for recipe in configs/published/"$card"-[a-z]*.toml configs/"$card"/*.toml; do
    # The pattern of the RTX 4060 finds those of the laptop as well.
    if [ ! -e "$recipe" ] || [[ $card == rtx-4060 && $recipe == configs/published/rtx-4060-laptop-* ]]; then
      continue
    fi
    # Networks of three million weights, measured for a minute each.
    if [[ $recipe == configs/published/*-evacuation-* && -z ${BRASA_SLOW-} ]]; then
      echo "SKIPPED: plan $recipe on $card takes a minute; set BRASA_SLOW=1 to run it"
      continue
    fi
    echo "plan $recipe on $card"
    # The exit code says whether it fits.
    "$brasa" plan "$recipe" --device "$card" >/dev/null
  done
  for recipe in configs/"$card"/*.toml; do
    echo "train $recipe on the processor"
    # More steps than those before the first update of off-policy learners.
    "$brasa" train "$recipe" --steps 2500 --device cpu --quiet --out "$folder/$card-$(basename "$recipe" .toml)" >/dev/null
  done
done
