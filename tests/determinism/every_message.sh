#!/bin/sh
# Every shipped scenario has one result and one timeline, whether collectives that are alike are
# recorded or each of their messages is simulated: every_message.sh PODSIM SCENARIOS
#
# With PODSIM_TEST_THIN=N one of N scenarios is run. Timelines are of steps of up to a million
# events.
set -eu
podsim=$1
every=${PODSIM_TEST_THIN:-1}
timeline_events=1000000
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

find "$2" -name '*.json' | LC_ALL=C sort | awk -v every="$every" 'NR % every == 0' > "$folder/list"
[ -s "$folder/list" ] || { echo "$2: no scenarios"; exit 1; }

play() { "$podsim" run "$scenario" --quiet --set /workload/allow_oversubscription=true "$@"; }

same() { # FILE: of both ways
    [ -s "$folder/once.$1" ] || { echo "$scenario: no $1"; exit 1; }
    cmp "$folder/once.$1" "$folder/every.$1" || { echo "$scenario: another $1"; exit 1; }
}

while read -r scenario; do
    rm -f "$folder"/once.* "$folder"/every.*
    play --json "$folder/once.json"
    play --json "$folder/every.json" --no-record
    same json
    events=$(awk -F '[:,]' '$1 ~ /^ *"events"$/ { print $2 + 0; exit }' "$folder/once.json")
    [ "${events:?"$scenario"}" -le "$timeline_events" ] || continue
    play --trace "$folder/once.trace"
    play --trace "$folder/every.trace" --no-record
    same trace
done < "$folder/list"
