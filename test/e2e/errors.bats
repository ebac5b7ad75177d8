#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# What users read when something is wrong, word for word where it matters: from the command line, and as runc shows it
# when the hook fails. An error says what, where and what next, in at most three lines; it never is a crash or a hang.

load engines

setup_file() {
	require_root
	require_program runc
	bundle debian "$BATS_FILE_TMPDIR/bundle"
}

# cli PROFILE ARGUMENT…: the command line, with standard error only in $output
cli() {
	local profile=$1
	shift
	run sandbox "$profile" bash -c '"$@" 2>&1 >/dev/null' cli "$CTR_GPU_BUILD/bin/ctr-gpu" "$@"
}

# hook PROFILE [JQ-FILTER [CONFIG]]: what runc shows when it starts a container there
hook() {
	local directory=$BATS_FILE_TMPDIR/bundle

	jq "${2:-.}" "$directory/config.json" >"$directory/config.new"
	mkdir -p "$BATS_TEST_TMPDIR/bundle"
	ln -sfT "$directory/rootfs" "$BATS_TEST_TMPDIR/rootfs"
	jq --arg path "$directory/rootfs" '.root.path = $path' "$directory/config.new" >"$BATS_TEST_TMPDIR/bundle/config.json"
	run run_bundle "$1" runc "$BATS_TEST_TMPDIR/bundle" "${3-}"
}

# In the host's /etc for one command: setting FILE-CONTENT COMMAND…
with_config() {
	local profile=$1 content=$2
	shift 2
	run sandbox "$profile" bash -c 'mkdir -p /etc/ctr-gpu && echo "$0" >/etc/ctr-gpu/config.json && "$@" 2>&1' "$content" "$@"
}

# A message of ours: its name, at most three lines, indented after the first.
expect_message() {
	local text

	[[ $status -ne 0 ]]
	expect "[$1] "
	text=${output##*"[$1]"}
	text=${text%%'"'*}
	text=${text//\\n/$'\n'}
	[[ $(grep -c . <<<"$text") -le 3 ]] || {
		printf 'more than three lines: %s\n' "$output"
		return 1
	}
	! grep -E '^ ?.{125}' <<<"$text" || {
		printf 'a line of more than 120 characters behind the indentation: %s\n' "$output"
		return 1
	}
}

# refused_by_both PROFILE NAME TEXT…: command line and hook say the same, and the container does not start
refused_by_both() {
	local profile=$1 name=$2 text
	shift 2

	cli "$profile" list
	expect_status 1
	expect_message "$name"
	for text in "$@"; do
		expect "$text"
	done
	# Named, as a user would; for an image's "all" it may be no error.
	hook "$profile" '.process.env |= map(sub("=all$"; "=0"))'
	expect_message "$name"
	expect_not "cuInit"
	for text in "$@"; do
		expect "$text"
	done
}

@test "an IMEX channel that is no number" {
	cli native-fabric list --imex-channel=x
	expect_status 2
	expect "--imex-channel is a list of numbers such as 0,1, all, or none, not 'x'"
	for verb in list "cdi generate" "configure --dry-run /srv"; do
		# shellcheck disable=SC2086
		cli wsl-nvidia $verb --imex-channel=x
		expect_status 2
		expect "--imex-channel is a list of numbers such as 0,1, all, or none, not 'x'"
	done
	cli native-fabric list --imex-channel=0,,x
	expect_status 2
	run sandbox native-fabric bash -c 'mkdir -p /run/b/rootfs; echo "{\"ociVersion\": \"1.0.2\", \"process\": {\"env\": [\"NVIDIA_VISIBLE_DEVICES=all\", \"NVIDIA_IMEX_CHANNELS=x\"], \"args\": [\"a\"], \"cwd\": \"/\", \"user\": {\"uid\": 0, \"gid\": 0}}, \"root\": {\"path\": \"rootfs\"}}" >/run/b/config.json
		"$CTR_GPU_BUILD/bin/ctr-gpu-runtime" --dry-run create --bundle /run/b x'
	expect_message E_UNKNOWN_DEVICE
	expect 'a number, not "x"'
	expect "NVIDIA_IMEX_CHANNELS"
}

@test "no GPU device" {
	refused_by_both plain E_NO_DEVICE "neither /dev/dxg nor /dev/nvidiactl nor /dev/dri/renderD128" ".wslconfig" "NVIDIA on Linux:" "AMD, Intel: install the firmware. ctr-gpu doctor says which."
}

@test "a device without an adapter behind it" {
	refused_by_both wsl-no-adapter E_NO_ADAPTER "none behind it" "Add-VMGpuPartitionAdapter"
}

@test "a software device is not a GPU, and is named" {
	refused_by_both wsl-software-only E_NO_ADAPTER "Microsoft Basic Render Driver" "software device"
}

@test "a driver that is too old" {
	refused_by_both wsl-old-driver E_DRIVER_TOO_OLD "WDDM 2.6; 2.7 is needed" "wsl --shutdown"
}

@test "a driver store that is not on disk" {
	refused_by_both hyperv-stale-store E_NO_DRIVER_STORE "$(store hyperv-stale-store 0)" "is missing" "Copy that directory"
}

@test "a store missing for one of two adapters does not hinder the other" {
	cli hyperv-half-stale list
	expect_status 0
	hook hyperv-half-stale '.process.args = ["/bin/sh", "-c", "ls /usr/lib/wsl/drivers"]'
	expect_status 0
	[[ $(grep -c inf_amd64 <<<"$output") -eq 1 ]]
}

@test "info shows adapters that cannot be used" {
	run sandbox wsl-old-driver "$CTR_GPU_BUILD/bin/ctr-gpu" info
	expect "NVIDIA GeForce RTX 4090"
	expect "2.6"
}

# ---- libdxcore ----

broken_dxcore() {
	local profile=$1 name=$2 text=$3

	cli "$profile" list --inventory dxcore --timeout 1
	expect_status 1
	expect_message "$name"
	expect "$text"
	# ctr-gpu does without it, programs in containers do not.
	for what in list info; do
		cli "$profile" $what --timeout 1
		expect_status 1
		expect "programs in containers ask it, too"
		expect "wsl --update"
		expect_not "warning:"
	done
	with_config "$profile" '{"driver-timeout": 1}' "$CTR_GPU_BUILD/bin/ctr-gpu" list
	expect_status 1
	expect "programs in containers ask it, too"
	with_config "$profile" '{"inventory": "dxcore", "driver-timeout": 1}' "$CTR_GPU_BUILD/bin/ctr-gpu" list
	expect_message "$name"
}

@test "libdxcore without the symbols that are needed" {
	broken_dxcore wsl-dxcore-broken E_DRIVER_LIBRARY "it has no D3DKMTEnumAdapters2"
}

@test "libdxcore that crashes" {
	broken_dxcore wsl-dxcore-crashes E_DRIVER_LIBRARY "crashed (SIG"
}

@test "libdxcore that hangs" {
	broken_dxcore wsl-dxcore-hangs E_DRIVER_TIMEOUT "did not answer within 1 s"
	run sandbox wsl-dxcore-hangs bash -c "timeout 20 '$CTR_GPU_BUILD/bin/ctr-gpu' list --timeout 0.2 >/dev/null; pgrep ctr-gpu-driverd"
	expect_status 1
}

@test "libdxcore that is not there, and is insisted on" {
	cli hyperv-no-libdxcore list --inventory dxcore
	expect_message E_DRIVER_LIBRARY
	expect "libdxcore.so is missing"
	expect "ioctl"
}

broken_dxcore_in_hook() {
	hook "$1" '.process.args = ["/usr/bin/probe", "open", "/dev/dxg"]' '{"driver-timeout": 0.5}'
	expect_status 0
	expect_line "/dev/dxg=ok"
}

@test "the hook starts containers although libdxcore is broken, crashes or hangs" {
	broken_dxcore_in_hook wsl-dxcore-broken
	broken_dxcore_in_hook wsl-dxcore-crashes
	broken_dxcore_in_hook wsl-dxcore-hangs
}

@test "the hook fails when it is told to use nothing but a libdxcore that hangs" {
	hook wsl-dxcore-hangs . '{"inventory": "dxcore", "driver-timeout": 0.5}'
	expect_message E_DRIVER_TIMEOUT
	expect "did not answer within 0.5 s"
	expect_not "cuInit"
}

# ---- requests ----

@test "a device that does not exist" {
	cli wsl-nvidia list --device 3
	expect_message E_UNKNOWN_DEVICE
	expect 'this host has no device "3"'
	expect "NVIDIA GeForce RTX 4090"
	hook wsl-nvidia "$(visible 3)"
	expect_message E_UNKNOWN_DEVICE
	expect "NVIDIA GeForce RTX 4090"
	expect_not "cuInit"
}

@test "a capability that does not exist" {
	hook wsl-nvidia "$(visible all) | .process.env += [\"NVIDIA_DRIVER_CAPABILITIES=compute,teleport\"]"
	expect_message E_UNKNOWN_CAPABILITY
	expect "teleport"
}

@test "a device asked for by an endless or unprintable name" {
	hook wsl-nvidia ".process.env = [\"PATH=/usr/bin\", \"NVIDIA_VISIBLE_DEVICES=\" + ([range(30000)] | map(\"x\") | add)]"
	expect_message E_UNKNOWN_DEVICE
	[[ ${#output} -lt 2000 ]]
}

# ---- containers ----

@test "a root filesystem that is this machine's own" {
	cli wsl-nvidia configure /
	expect_message E_BAD_ROOTFS
	expect "is the root directory of this machine"
}

@test "a root filesystem that is not there" {
	cli wsl-nvidia configure /nonexistent/rootfs
	expect_message E_BAD_ROOTFS
	expect "/nonexistent/rootfs"
}

@test "a container that runs already" {
	local root

	root=$(image debian)
	run sandbox wsl-nvidia bash -c '
		unshare --mount --pid --fork --root "$1" /bin/sleep 600 &
		soon pgrep -x sleep
		pid=$(pgrep -x sleep)
		"$0" configure --pid "$pid" "$1" 2>&1
	' "$CTR_GPU_BUILD/bin/ctr-gpu" "$root"
	expect_message E_CONTAINER_RUNNING
	expect "createRuntime"
}

@test "a process of the host in place of the container's" {
	image_copy debian "$BATS_TEST_TMPDIR/rootfs"
	run sandbox wsl-nvidia bash -c '"$0" configure --pid $$ "$1" 2>&1' "$CTR_GPU_BUILD/bin/ctr-gpu" "$BATS_TEST_TMPDIR/rootfs"
	expect_message E_BAD_ARGUMENT
	expect "mount namespace"
	[[ ! -e $BATS_TEST_TMPDIR/rootfs/dev/dxg ]]
}

@test "a process that does not exist" {
	cli wsl-nvidia configure --pid 4000000 /rootfs
	[[ $status -eq 1 ]]
	expect "process 4000000 does not exist"
}

@test "somebody who may not" {
	image_copy debian "$BATS_TEST_TMPDIR/rootfs"
	chmod 755 "$BATS_RUN_TMPDIR" "$BATS_TEST_TMPDIR"
	run sandbox wsl-nvidia bash -c '
		mkdir /run/ctr-gpu && mount --bind "$CTR_GPU_BUILD" /run/ctr-gpu &&
		setpriv --reuid 65534 --regid 65534 --clear-groups /run/ctr-gpu/bin/ctr-gpu configure "$0" 2>&1
	' "$BATS_TEST_TMPDIR/rootfs"
	expect_message E_NO_PERMISSION
	expect "root"
}

@test "somebody who may look: list and info need no rights" {
	run sandbox wsl-nvidia bash -c '
		mkdir /run/ctr-gpu && mount --bind "$CTR_GPU_BUILD" /run/ctr-gpu &&
		setpriv --reuid 65534 --regid 65534 --clear-groups /run/ctr-gpu/bin/ctr-gpu list 2>&1'
	expect_status 0
	expect_line "/dev/dxg"
}

@test "a read-only root without the mount points: it says what is missing" {
	image_copy no-etc "$BATS_TEST_TMPDIR/rootfs"
	run sandbox wsl-nvidia bash -c 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && "$0" configure "$1" 2>&1' \
		"$CTR_GPU_BUILD/bin/ctr-gpu" "$BATS_TEST_TMPDIR/rootfs"
	expect_message E_ROOTFS_READ_ONLY
	run find "$BATS_TEST_TMPDIR/rootfs/usr/lib" -name wsl
	[[ -z $output ]]
}

# ---- configuration and state ----

@test "a configuration file that is not JSON, or that others may write" {
	with_config wsl-nvidia '{"inventory": ' "$CTR_GPU_BUILD/bin/ctr-gpu" list
	expect_message E_BAD_CONFIG
	expect "/etc/ctr-gpu/config.json"
	run sandbox wsl-nvidia bash -c 'mkdir -p /etc/ctr-gpu && echo "{}" >/etc/ctr-gpu/config.json &&
		chmod 666 /etc/ctr-gpu/config.json && "$0" list 2>&1' "$CTR_GPU_BUILD/bin/ctr-gpu"
	expect_message E_BAD_CONFIG
	with_config wsl-nvidia '{"inventroy": "auto"}' "$CTR_GPU_BUILD/bin/ctr-gpu" list
	expect_message E_BAD_CONFIG
	expect "inventroy"
}

# Under this name the hook is called for containers that are to have GPUs, and only then is a state that it cannot read an error.
state() {
	run sandbox wsl-nvidia bash -c 'printf "%s" "$1" | "$0" prestart 2>&1' "$CTR_GPU_BUILD/bin/nvidia-container-runtime-hook" "$1"
}

@test "a state that is none" {
	state ''
	expect_message E_BAD_STATE
	state 'hello'
	expect_message E_BAD_STATE
	state '{"ociVersion": "1.0.2", "id": "x", "pid": 1}'
	expect_message E_BAD_STATE
	state '{"ociVersion": "1.0.2", "id": "x", "status": "creating", "pid": 1, "bundle": "/nonexistent"}'
	expect_message E_BAD_STATE
	expect "/nonexistent"
}

@test "a failed hook leaves nothing in the root filesystem" {
	local directory=$BATS_TEST_TMPDIR/fresh before

	bundle debian "$directory"
	mkdir "$directory/rootfs/usr/lib/wsl"
	touch "$directory/rootfs/usr/lib/wsl/drivers"
	before=$(cd "$directory/rootfs" && find . -printf '%y %m %p %l %s\n' | sort)
	run run_bundle wsl-nvidia runc "$directory"
	[[ $status -ne 0 ]]
	expect "ctr-gpu-hook: ["
	diff <(echo "$before") <(cd "$directory/rootfs" && find . -printf '%y %m %p %l %s\n' | sort)
}

# full COMMAND…: on a file system with room for nothing, and on a read-only one, below which it runs
where_nothing_can_be_written() {
	local place

	for place in full read-only; do
		run sandbox wsl-nvidia bash -c '
			mkdir /run/place && mount -t tmpfs -o size=4k,mode=755 tmpfs /run/place && mkdir /run/place/etc || exit 99
			if [[ $1 == full ]]; then
				head -c 4096 /dev/zero >/run/place/filler
			else
				mount -o remount,ro /run/place
			fi
			eval "$2" 2>&1 >/dev/null' place "$place" "$1"
		expect_status 1
		[[ $(grep -c . <<<"$output") -le 3 ]] || { echo "$output"; return 1; }
		if [[ $place == full ]]; then
			expect "No space left on device"
			expect "    The file system is full (see df -h and df -i): make room, and try again."
		else
			expect "Read-only file system"
			expect "    The file system is read-only: remount it writable, or write to another directory."
		fi
	done
}

@test "a full or read-only disk: a CDI spec, the log, a configuration file, its journal" {
	where_nothing_can_be_written 'ctr-gpu cdi generate --output=/run/place/'
	where_nothing_can_be_written 'ctr-gpu --debug=/run/place/log info; false'
	where_nothing_can_be_written 'ctr-gpu setup docker --engine-config=/run/place/daemon.json --runtime="$(command -v ctr-gpu-runtime)"'
	# A file of others, of which it is remembered what was there.
	where_nothing_can_be_written 'mkdir -p /var/lib /etc/docker; echo "{}" >/etc/docker/daemon.json; mount --bind /run/place /var/lib
		ctr-gpu setup docker --runtime="$(command -v ctr-gpu-runtime)"'
}

@test "a full disk: standard output" {
	run sandbox wsl-nvidia bash -c 'ctr-gpu info 2>&1 >/dev/full'
	expect_status 1
	expect "cannot write standard output: No space left on device"
	expect "make room, and try again."
}

@test "the message that ctr-gpu(1) shows is the one that is printed" {
	cli wsl-nvidia list --device=7
	diff <(sed -n '/^\.Sh DIAGNOSTICS/,/^\.Ed/p' "$e2e/../../man/ctr-gpu.1" | sed '1,/^\.Bd/d; /^\.Ed/d') <(echo "$output")
}
