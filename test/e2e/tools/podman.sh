#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Podman for tests. What a container prints at once can be lost on the way to `podman run`: conmon may see it before it has
# accepted the connection on which Podman waits for it (seen with 4.3 on busy machines). The container's log always has it.

set -u

PATH=:$PATH:
PATH=${PATH//:$(dirname "$0"):/:}
PATH=${PATH#:} PATH=${PATH%:}

# The position of "run" behind Podman's own options, of which tests use --runtime alone.
at=1
[[ ${1-} != --runtime ]] || at=3
[[ ${!at-} == run ]] || exec podman "$@"

log=$(mktemp "${TMPDIR:-/tmp}/ctr-gpu-podman-XXXXXX") || exit
trap 'rm -f "$log"' EXIT
podman "${@:1:at}" --log-driver k8s-file --log-opt "path=$log" "${@:at+1}" >/dev/null
status=$?
# TIME STREAM F|P TEXT: a line, or a part of one
sed -n 's/^[^ ]* stdout [FP] //p' "$log"
exit $status
