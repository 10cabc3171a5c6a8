#!/bin/sh
# Everything in one command: installs the pinned packages (no script of theirs runs), compiles, measures, prints.
#
#   ./run.sh [PROGRAM...] [OPTION...]            on this machine: needs npm and, for C++, a compiler, make, Python 3
#   ./run.sh --docker [PROGRAM...] [OPTION...]   in a container; BASE=IMAGE names its base
set -eu
cd "$(dirname "$0")"
if [ "${1-}" = --docker ]; then
  shift
  tag=repro-of-a-finding
  docker build --tag "$tag" ${BASE:+--build-arg "BASE=$BASE"} .
  exec docker run --rm --network none --cap-drop ALL "$tag" "$@"
fi
# npm writes this file last.
[ -f node_modules/.package-lock.json ] || npm ci --ignore-scripts --no-bin-links --no-audit --no-fund
exec npm start --silent -- "$@"
