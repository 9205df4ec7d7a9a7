#!/bin/sh
# Collectives that are alike are simulated once: records.sh PODSIM SCENARIO...
#
# With every message (--no-record) a step has the same result, and --timing counts what is recorded.
set -eu
podsim=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

play() {
    "$podsim" run "$scenario" --set /run/steps=1 --set /workload/allow_oversubscription=true "$@"
}

counts() { # PATTERN OPTION...
    pattern=$1
    shift
    play --timing "$@" > "$folder/said"
    grep -q "collectives: $pattern" "$folder/said" || { echo "$scenario: not $pattern"; exit 1; }
}

for scenario; do
    play --quiet --json "$folder/once.json"
    play --quiet --json "$folder/every.json" --no-record
    cmp "$folder/once.json" "$folder/every.json" || { echo "$scenario: another result"; exit 1; }
    counts '[1-9][0-9,]* recorded, [1-9]'
    counts '0 recorded, 0 posted, 0 landed, [1-9]' --no-record
done
