#!/bin/sh
# Everything in one command: installs the pinned packages (no script of theirs runs), compiles, measures, prints.
#
#   ./run.sh [PROGRAM...] [OPTION...]            on this machine: needs npm and, for C++, a compiler, make, Python 3
#   ./run.sh --docker [PROGRAM...] [OPTION...]   in a container; BASE=IMAGE names its base, NPMRC=FILE npm settings
set -eu
cd "$(dirname "$0")"
if [ "${1-}" = --docker ]; then
  shift
  tag="repro-$(basename "$PWD" | tr -c 'a-z0-9\n' '-' | tr -s '-' | sed 's/^-//;s/-$//')"
  docker build --tag "$tag" ${BASE:+--build-arg "BASE=$BASE"} .
  exec docker run --rm --network none --cap-drop ALL "$tag" "$@"
fi
[ -d node_modules ] || npm ci --ignore-scripts --no-bin-links --no-audit --no-fund
exec npm start --silent -- "$@"
