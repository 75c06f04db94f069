#!/bin/sh
# run.sh short|long|huge|all [PATTERN]: check the models by runs.txt (all: short and long), as many at once as there are processors (JOBS).
#
# A run that should hold must search all states and find no error; one with a wrong rule must end with the assertion that is named.
# A run that finds no error then, another one, or does not get to its end, fails.
#   MUTANTS=60 sh run.sh short        of the runs with a wrong rule only so many, chosen by chance
#   TRAIL=1 sh run.sh all 'M_INCR'    prints the end of the course of events that was found
set -u
here=$(cd "$(dirname "$0")" && pwd)
LIMIT=${LIMIT:-900}     # seconds a run
MEMORY=${MEMORY:-6000}  # MB a run
DEPTH=${DEPTH:-1000000} # of the search
export LIMIT MEMORY DEPTH

# one run: SET MODEL WANT FLAGS
one() {
  set_of_run=$1 model=$2 want=$3 flags=$4
  dir=$(mktemp -d) || exit 2
  trap 'rm -rf "$dir"' EXIT
  cp "$here/$model.pml" "$dir/" && cd "$dir" || exit 2
  optimize=-O1 # most runs are over sooner than -O2 is done
  [ "$set_of_run" = short ] || optimize=-O2
  # shellcheck disable=SC2086
  if ! spin -a $flags "$model.pml" >spin.out 2>&1 || grep -q '[Ee]rror:' spin.out ||
    ! ${CC:-gcc} "$optimize" -w -DSAFETY -DCOLLAPSE -DVECTORSZ=2048 -DMEMLIM="$MEMORY" -o pan pan.c 2>>spin.out; then
    cat spin.out
    echo "FAIL  $model $flags: does not compile"
    exit 1
  fi
  began=$(date +%s)
  timeout "$LIMIT" ./pan -m"$DEPTH" -n -E >out 2>&1
  code=$?
  seconds=$(($(date +%s) - began))
  states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' out)
  memory=$(sed -n 's/^ *\([0-9]*\)[0-9.]*[[:space:]]*total actual memory usage.*/\1/p' out)
  found=$(sed -n 's/^pan:[0-9]*: assertion violated \([a-z0-9]*\) (at depth.*/\1/p' out | head -1)
  got=unfinished
  if grep -q 'errors: 0$' out && [ "$code" = 0 ] && ! grep -q 'not completed\|too small\|out of memory' out; then
    got=holds
  elif [ -n "$found" ]; then
    got=$found
  fi
  verdict=ok
  [ "$got" = "$want" ] || verdict=FAIL
  printf '%-5s %-8s %-52s %-10s %10s states %5s MB %4s s\n' "$verdict" "$model" "$flags" "$got" "${states:-?}" "${memory:-?}" "$seconds"
  if [ "$verdict" != ok ]; then
    echo "      wanted: $want"
    grep '^pan:\|^Warning' out | head -3
  fi
  # shellcheck disable=SC2086
  [ -z "${TRAIL:-}" ] || [ "$got" = holds ] || spin -t -p -g $flags "$model.pml" | tail -300
  [ "$verdict" = ok ]
}

if [ "${1:-}" = --one ]; then
  shift
  one "$@"
  exit
fi

set_name=${1:-short}
lines=$(grep -v '^#' "$here/runs.txt" | grep -e "${2:-.}" |
  awk -F '\t' -v set="$set_name" 'NF >= 3 && ($1 == set || (set == "all" && $1 != "huge"))')
if [ -n "${MUTANTS:-}" ]; then
  sound=$(printf '%s\n' "$lines" | awk -F '\t' '$3 == "holds"')
  wrong=$(printf '%s\n' "$lines" | awk -F '\t' '$3 != "holds"' | shuf -n "$MUTANTS")
  lines=$(printf '%s\n%s' "$sound" "$wrong")
fi
runs=$(printf '%s\n' "$lines" | awk -F '\t' 'NF >= 3 { printf "%s\n%s\n%s\n%s\n", $1, $2, $3, $4 }')
if [ -z "$runs" ]; then
  echo "no such run" >&2
  exit 2
fi
# four lines a run: set, model, what is wanted, flags (which may be empty)
if printf '%s\n' "$runs" | sed 's/^$/-DPLAIN/' | tr '\n' '\0' |
  xargs -0 -n 4 -P "${JOBS:-$(nproc)}" sh "$here/run.sh" --one; then
  echo "models ($set_name): $(($(printf '%s\n' "$runs" | wc -l) / 4)) runs, each as expected"
else
  echo "models ($set_name): a run was not as expected" >&2
  exit 1
fi
