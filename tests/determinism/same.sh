#!/bin/sh
# One scenario, several ways to run it, one result: same.sh PODSIM SCENARIO [OPTION...]
#
# Twice; without a timeline, where layers that recur are not simulated one by one; with every
# message of collectives that are alike (--no-record); by the reference queue; with every chip and
# hop (--full), where the step, the phases, the collectives' times and the timeline of the first
# chip must be those of the folded run.
set -eu
podsim=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
scenario=$2
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

play() { # NAME OPTION...
    name=$1
    shift
    "$podsim" run "$scenario" --quiet --json "$folder/$name.json" --trace "$folder/$name.pftrace" \
        --set /workload/allow_oversubscription=true "$@"
}

same() { # A B WHAT
    if ! cmp "$folder/$1" "$folder/$2"; then
        diff "$folder/$1" "$folder/$2" | head -n 20 || true
        echo "$scenario: $3"
        exit 1
    fi
}

# What a folded and a full run must share: every instant, nothing that counts chips.
instants() {
    keys='step_time_ps|begin_s|end_s|compute_s|exposed_communication_s|idle_s|time_s|exposed_s'
    grep -E "\"($keys|peak_bytes|peak_at_s)\"" "$folder/$1.json" > "$folder/$1.instants"
}

play first "$@"
play again "$@"
same first.json again.json "two runs differ"
same first.pftrace again.pftrace "the timelines of two runs differ"
"$podsim" run "$scenario" --quiet --json "$folder/short.json" \
    --set /workload/allow_oversubscription=true "$@"
same first.json short.json "layers that recur give another result"
play every "$@" --no-record
same first.json every.json "collectives that are alike give another result"
same first.pftrace every.pftrace "collectives that are alike give another timeline"
play reference "$@" --engine reference
same first.json reference.json "the reference queue gives another result"
same first.pftrace reference.pftrace "the reference queue gives another timeline"
play full "$@" --full
instants first
instants full
[ -s "$folder/full.instants" ]
same first.instants full.instants "folded and full runs differ"
same first.pftrace full.pftrace "the timelines of folded and full runs differ"
play full-reference "$@" --full --engine reference
same full.json full-reference.json "the reference queue gives another full result"
