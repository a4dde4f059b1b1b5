#!/usr/bin/env bash
# Tests every pair of the hosts of each star in scenarios/star with `linerate mesh`, and compares the first cause with what the
# star expects. Half a minute to two minutes a run. RUNS=n runs each so often, ONLY=text only those with it in the name.
# Fails where fewer than 95 in 100 of the planted causes come first, or a healthy star has one.
set -euo pipefail
linerate=$(realpath "$1")
folder=$(mktemp -d)
export XDG_RUNTIME_DIR="$folder"
trap '"$linerate" lab down --all >/dev/null 2>&1 || true; rm -rf "$folder"' EXIT
right=0 planted=0 healthy=0 alarms=0
for run in $(seq "${RUNS:-1}"); do
    for file in scenarios/star/*"${ONLY:-}"*.toml; do
        name=$(basename "$file" .toml)
        "$linerate" lab up "$name" --scenario "$file" --seed "$run" >/dev/null
        "$linerate" lab list --json >"$folder/list"
        "$linerate" lab list --groups "$name" >"$folder/groups"
        hosts=$(python3 -c 'import json, sys; print(",".join(host["name"] for host in json.load(sys.stdin)[0]["hosts"]))' <"$folder/list")
        kind=$(python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["expect"]["kind"] or "none")' <"$folder/list")
        options=()
        # Only fixed source ports take the same member of a bond each time.
        [ "$kind" = port ] && options=(--ports 16)
        code=0
        "$linerate" mesh "$hosts" "${options[@]}" --json --groups "$folder/groups" -o "$folder/$name-$run" --connect-timeout 5s \
            --via "$linerate lab exec $name {host} -- sh -c" -- -t 2 >"$folder/mesh" 2>"$folder/said" || code=$?
        "$linerate" lab down "$name" >/dev/null
        verdict=$(python3 - "$folder/list" "$folder/mesh" <<'JUDGE'
import json, sys
expect = json.load(open(sys.argv[1]))[0]["expect"]
try:
    causes = json.load(open(sys.argv[2]))["causes"]
except ValueError:
    print("wrong: the mesh printed no document")
    sys.exit()
names = expect["names"]
said = "; ".join(f'{one["kind"]} {one["name"]}' for one in causes) or "nothing"
first = causes[0] if causes else {"kind": None, "name": None}
# Ports are named by the hosts between which they are slow.
fits = first["kind"] == expect["kind"] and (first["name"] in names or expect["kind"] in (None, "port"))
print(("right: " if fits else "wrong: ") + said)
JUDGE
        )
        echo "$name, seed $run (exit code $code): $verdict"
        if [ "$kind" = none ]; then
            healthy=$((healthy + 1))
            [[ $verdict == right* ]] || alarms=$((alarms + 1))
        else
            planted=$((planted + 1))
            [[ $verdict == wrong* ]] || right=$((right + 1))
        fi
    done
done
echo "$right of $planted planted causes come first; $alarms of $healthy healthy stars have one"
[ $((right * 100)) -ge $((planted * 95)) ] && [ "$alarms" -eq 0 ]
