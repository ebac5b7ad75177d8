#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016
#
# ctr-gpu under the name nvidia-container-cli, with the arguments that each known caller really uses. The callers themselves
# that the distribution has are in ctr.bats and lxc.bats.

load engines

setup_file() {
	require_root
	require_program runc
	require_program strace
	image debian >/dev/null
}

cli() {
	echo "$CTR_GPU_BUILD/bin/nvidia-container-cli"
}

# on PROFILE ARGUMENT…: our program on a simulated host, standard error in $output, too
on() {
	local profile=$1
	shift
	run sandbox "$profile" "$(cli)" "$@"
}

# hook PROFILE ARGUMENT…: runc runs the probe in a container, for which a prestart hook runs our program as NVIDIA's hook does:
# with the arguments, the pid from the state on standard input, and the root directory
hook() {
	local profile=$1 directory=$BATS_TEST_TMPDIR/bundle arguments
	shift
	rm -rf "$directory"
	arguments=$(jq -cn '$ARGS.positional' --args -- bash -c 'exec "$0" "$@" --pid="$(jq .pid)" "$PWD/rootfs"' "$(cli)" "$@")
	bundle debian "$directory" '
		.hooks.prestart = [{path: "/bin/bash", env: ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"], args: '"$arguments"'}]
		| .process.args = ["/bin/sh", "-c", "probe; probe node 10 183 /tmp/node"]
		| .process.capabilities |= with_entries(.value += ["CAP_MKNOD"])
		| .linux.resources.devices += [{allow: true, type: "c", access: "m"}]'
	run run_bundle "$profile" runc "$directory"
}

# standalone PROFILE ARGUMENT…: in a user and a mount namespace of an ordinary user, as enroot and Apptainer run it, then the
# probe in the root directory
standalone() {
	local profile=$1 directory
	shift

	directory=$(engine_directory rootless)
	rm -rf "$directory/rootfs"
	image_copy debian "$directory/rootfs"
	chown -R 54321:54321 "$directory/rootfs"
	run rootless "$profile" unshare --user --map-root-user --mount bash -c '
		mount --bind rootfs rootfs && nvidia-container-cli "$@" "$PWD/rootfs" && { chroot rootfs /usr/bin/probe || true; }
	' standalone "$@"
}

expect_gpu() {
	expect_status 0
	expect_line "cuInit=0"
	expect_line "device=$1"
}

geforce="NVIDIA GeForce RTX 4090"

# ---- callers ----

@test "NVIDIA's hook: a GPU-PV host" {
	hook wsl-nvidia --load-kmods --no-create-imex-channels --no-pivot --debug="$BATS_TEST_TMPDIR/log" --ldcache=/etc/ld.so.cache \
		--user=root:video --root=/ configure --cuda-compat-mode=mount --ldconfig=@/sbin/ldconfig.real --device=all --compute \
		--utility --video '--require=cuda>=12.0 brand=tesla,driver>=470'
	expect_gpu "$geforce"
	expect_line "/dev/dxg=ok"
	expect_line "/tmp/node=ok"
	run cat "$BATS_TEST_TMPDIR/log"
	expect "nvidia-container-cli: debug: --cuda-compat-mode=mount is not done"
	expect "--ldconfig is not needed"
	expect "--user is not needed"
	expect "mounted /usr/lib/wsl/lib"
}

@test "NVIDIA's hook: a native host, with the options of other versions" {
	hook native-nvidia --load-kmods configure --no-cntlibs --ldconfig=@/sbin/ldconfig --device=0 --compat32 --compute --display \
		--graphics --ngx --utility --video
	expect_gpu "NVIDIA H200"
	expect_line "library=/usr/lib/ctr-gpu/libcuda.so.1"
	hook native-mig configure --ldconfig=@/sbin/ldconfig --cuda-compat-mode=disabled \
		--device=GPU-b703df58-2273-35fb-29be-3f6c49b83a96 --mig-config=all --mig-monitor=all --imex-channel=0 --compute --utility
	# This host has no IMEX service.
	expect "nvidia-container-cli: device error: IMEX channel 0"
	expect_no_line "cuInit=0"
}

@test "NVIDIA's hook: device rules are left alone when that is asked for, and nodes are" {
	hook wsl-nvidia configure --no-cgroups --device=all --compute
	expect_line "/dev/dxg=EPERM"
	expect_line "/tmp/node=EPERM"
	hook wsl-nvidia configure --no-devbind --device=all --compute
	expect_line "/dev/dxg=ENOENT"
	expect_line "/tmp/node=ok"
}

@test "LXC's hook" {
	standalone wsl-nvidia --user --debug=/run/home/log --ldcache=/etc/ld.so.cache --root=/ configure --no-cgroups \
		--ldconfig=@/sbin/ldconfig --device=all --compute --compat32 --display --graphics --utility --video
	expect_gpu "$geforce"
	run cat "$(engine_directory rootless)/log"
	expect "mounted /dev/dxg"
	# Its NVIDIA_VISIBLE_DEVICES=none.
	standalone wsl-nvidia --user configure --no-cgroups --ldconfig=@/sbin/ldconfig --utility
	expect_status 0
	expect_no_line "cuInit=0"
}

@test "enroot's hook" {
	standalone wsl-nvidia --user --debug=/dev/stderr configure --no-cgroups --ldconfig=@/sbin/ldconfig --device=0 --compute --utility \
		'--require=cuda>=9.0'
	expect_gpu "$geforce"
	expect "nvidia-container-cli: debug: mounted /dev/dxg"
	standalone native-nvidia --user configure --no-cgroups --ldconfig=@/sbin/ldconfig --device=all --compute --utility
	expect_gpu "NVIDIA H200"
}

@test "Apptainer: as root, and in a user namespace" {
	standalone hyperv-no-libdxcore --user configure --no-cgroups --device=all --utility --ldconfig=@/sbin/ldconfig
	expect_status 0
	expect_line "/dev/dxg=ok"
	image_copy debian "$BATS_TEST_TMPDIR/rootfs"
	run sandbox wsl-nvidia unshare --mount bash -c '"$0" configure --no-cgroups --mig-config=all --mig-monitor=all --device=all \
		--compute --utility --ldconfig=@/sbin/ldconfig "$1" && exec chroot "$1" /usr/bin/probe' "$(cli)" "$BATS_TEST_TMPDIR/rootfs"
	expect_gpu "$geforce"
}

# ---- what is printed ----

@test "info has the layout that scripts take apart" {
	on native-nvidia --load-kmods info
	expect_status 0
	[[ $output == "NVRM version:   580.159.04
CUDA version:   13.0

Device Index:   0
Device Minor:   0
Model:          NVIDIA H200
Brand:          nvidia
GPU UUID:       GPU-b703df58-2273-35fb-29be-3f6c49b83a95
Bus Location:   00000000:00:06.0
Architecture:   9.0" ]]
	on native-mig info --csv
	expect_status 0
	[[ $output == "NVRM version,CUDA version
580.159.04,13.0

Device Index,Device Minor,Model,Brand,GPU UUID,Bus Location,Architecture
0,0,NVIDIA H200,nvidia,GPU-b703df58-2273-35fb-29be-3f6c49b83a95,00000000:00:06.0,9.0
1,1,NVIDIA H200,nvidia,GPU-b703df58-2273-35fb-29be-3f6c49b83a96,00000000:00:07.0,9.0" ]]
}

@test "info says of a GPU-PV host what is known" {
	on wsl-hybrid info
	expect_status 0
	expect_line "NVRM version:   N/A"
	expect_line "CUDA version:   12.8"
	expect_line "Model:          NVIDIA GeForce RTX 4070 Laptop GPU"
	expect_line "Device Index:   1"
	expect_line "Bus Location:   00000000:00:02.0"
	expect_line "Device Minor:   N/A"
}

@test "info lets nothing of a driver's name reach the terminal but what can be read" {
	run sandbox native-nvidia bash -c 'file=$(echo /proc/driver/nvidia/gpus/*/information)
		sed "s/H200/\x1b[31mH200/" "$file" >/run/information && mount --bind /run/information "$file" && exec "$0" info' "$(cli)"
	expect_status 0
	expect_line "Model:          NVIDIA ?[31mH200"
}

@test "list: everything, or the kinds that are asked for" {
	on native-nvidia list
	expect_status 0
	expect_line "/dev/nvidia0"
	expect_line "/usr/bin/nvidia-smi"
	expect_line "/usr/lib/x86_64-linux-gnu/libcuda.so.580.159.04"
	expect_line "/usr/lib/firmware/nvidia/580.159.04"
	all=$output
	on native-nvidia list --libraries
	expect_line "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.580.159.04"
	[[ -z $(grep -v '/lib.*\.so' <<<"$output") ]]
	on native-nvidia list -b -i
	short=$output
	on native-nvidia list --binaries --ipcs --no-persistenced --no-fabricmanager
	[[ $output == "$short" ]]
	expect_line "/usr/bin/nvidia-smi"
	expect_not "/lib"
	on native-nvidia list --firmwares
	[[ $output == /usr/lib/firmware/nvidia/580.159.04 ]]
	on native-nvidia list --no-gsp-firmware -f
	[[ -z $output && $status -eq 0 ]]
	on native-nvidia list --device=0
	[[ -z $(grep -v '^/dev/' <<<"$output") ]]
	expect_line "/dev/nvidia0"
	on native-mig list --mig-config=all -d 1:0
	expect "go with whole GPUs"
	on native-mig list --mig-config=all --mig-monitor all -d 1
	expect_line "/dev/nvidia-caps/nvidia-cap1"
	expect_line "/dev/nvidia-caps/nvidia-cap2"
	expect_no_line "/dev/nvidia0"
	# Paths of the host, all of them there.
	run sandbox native-nvidia bash -c 'while read -r path; do [[ -e $path ]] || echo "$path"; done' <<<"$all"
	[[ -z $output ]]
}

@test "list: 32-bit libraries" {
	on native-compat32 list --libraries
	expect_not i386
	on native-compat32 list --libraries --compat32
	expect i386
	[[ $(sort <<<"$output") == $(sort -u <<<"$output") ]]
}

@test "list: the libraries of a GPU-PV host, as files" {
	on wsl-nvidia list -l -b
	expect_line "/usr/lib/wsl/lib/libdxcore.so"
	expect_line "$(store wsl-nvidia 0)/libcuda.so.1.1"
	expect_line "/usr/lib/wsl/lib/nvidia-smi"
	expect_no_line "/dev/dxg"
	on wsl-nvidia list -d 0
	[[ $output == /dev/dxg ]]
}

@test "the version" {
	for option in --version -V; do
		run "$(cli)" "$option"
		[[ $status -eq 0 && $output == "cli-version: "*$'\n'"lib-version: "* ]]
	done
}

@test "a dry run prints the plan that ctr-gpu prints, and changes nothing" {
	mkdir "$BATS_TEST_TMPDIR/empty"
	for profile in wsl-hybrid native-mig; do
		on "$profile" configure --dry-run --no-cgroups --ldconfig=@/sbin/ldconfig --device=0 --compute --utility --pid=1 \
			"$BATS_TEST_TMPDIR/empty"
		expect_status 0
		plan=$output
		run sandbox "$profile" ctr-gpu configure --dry-run --json --device=0 "$BATS_TEST_TMPDIR/empty"
		[[ $output == "$plan" && -n $plan ]]
	done
	rmdir "$BATS_TEST_TMPDIR/empty"
}

# ---- errors ----

# fails PROFILE CLASS TEXT ARGUMENT…: status 1, at most three lines, and the first begins as log scrapers expect
fails() {
	local profile=$1 class=$2 text=$3
	shift 3
	on "$profile" "$@"
	expect_status 1
	[[ $output == "nvidia-container-cli: $class: "* && $(wc -l <<<"$output") -le 3 ]] || {
		printf 'expected: %s\nin: %s\n' "$class" "$output"
		return 1
	}
	expect "$text"
}

@test "initialization error" {
	for command in info list "configure /nowhere"; do
		# shellcheck disable=SC2086
		fails plain "initialization error" "[E_NO_DEVICE]" $command
	done
	fails wsl-no-adapter "initialization error" "[E_NO_ADAPTER]" info
	fails wsl-old-driver "initialization error" "[E_DRIVER_TOO_OLD]" list
	fails hyperv-stale-store "initialization error" "[E_NO_DRIVER_STORE]" configure --device=all /nowhere
	fails native-halfway "initialization error" "[E_DRIVER_LIBRARY]" configure --device=all /nowhere
	run sandbox wsl-nvidia bash -c 'mkdir -p /etc/ctr-gpu && echo "{" >/etc/ctr-gpu/config.json && exec "$0" info' "$(cli)"
	expect "nvidia-container-cli: initialization error: /etc/ctr-gpu/config.json"
}

@test "detection error" {
	run sandbox wsl-nvidia bash -c 'mount -t tmpfs -o mode=700 tmpfs /usr/lib/wsl/lib &&
		exec setpriv --reuid 54321 --regid 54321 --clear-groups --bounding-set=-all --inh-caps=-all "$0" list' "$(cli)"
	expect_status 1
	expect "nvidia-container-cli: detection error: cannot read /usr/lib/wsl/lib"
}

@test "device error" {
	fails wsl-nvidia "device error" 'this host has no device "7"' configure --device=7 /nowhere
	fails native-nvidia "device error" "[E_UNKNOWN_DEVICE]" list --device=GPU-00000000-0000-0000-0000-000000000000
}

@test "requirement error" {
	fails wsl-nvidia "requirement error" "unsatisfied condition: " configure --device=all '--require=cuda>=99.0' /nowhere
	fails wsl-nvidia "requirement error" "Update the host's driver" configure --device=all '--require=cuda>=99.0' /nowhere
	fails wsl-nvidia "requirement error" "A newer driver does not change that" configure --device=all '--require=cuda<9' /nowhere
	fails wsl-nvidia "requirement error" "[E_BAD_REQUIREMENT]" configure --device=all '--require=cuda=>1' /nowhere
}

@test "input error" {
	fails wsl-nvidia "input error" "invalid rootfs directory" configure --device=all /
	fails wsl-nvidia "input error" "invalid rootfs directory" configure --device=all rootfs
	fails wsl-nvidia "input error" "ROOTFS is missing" configure --device=all
	fails wsl-nvidia "input error" "one argument too many" configure --device=all /a /b
	fails wsl-nvidia "input error" "number of a process" configure --pid=x /nowhere
	fails wsl-nvidia "input error" "'all', not '0'" configure --mig-config=0 /nowhere
	fails wsl-nvidia "input error" "unknown driver capability" configure --capabilities=nonsense /nowhere
	fails wsl-nvidia "input error" "unknown command 'nonsense'" nonsense
	fails wsl-nvidia "input error" "absolute path" --root=here info
	on wsl-nvidia configure --nonsense /nowhere
	expect_status 1
	on wsl-nvidia
	expect_status 1
}

@test "container error" {
	fails wsl-nvidia "container error" "[E_BAD_ROOTFS]" configure --device=all /nowhere
	fails wsl-nvidia "container error" "does not exist" configure --device=all --pid=4194303 /nowhere
}

@test "permission error" {
	run sandbox wsl-nvidia setpriv --reuid 54321 --regid 54321 --clear-groups --bounding-set=-all --inh-caps=-all "$(cli)" \
		configure --device=all "$BATS_TEST_TMPDIR"
	expect_status 1
	expect "nvidia-container-cli: permission error: "
	expect "[E_NO_PERMISSION]"
}

@test "mount error" {
	mkdir -p "$BATS_TEST_TMPDIR/read-only/dev"
	run sandbox wsl-nvidia bash -c 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && exec "$0" configure --device=all "$1"' \
		"$(cli)" "$BATS_TEST_TMPDIR/read-only"
	expect_status 1
	expect "nvidia-container-cli: mount error: "
	expect "[E_ROOTFS_READ_ONLY]"
}

# ---- what it does not trust ----

@test "libraries of the image are not used, in whatever mode" {
	local compat=usr/local/cuda/compat
	for mode in mount ldconfig hook disabled; do
		rm -rf "$BATS_TEST_TMPDIR/rootfs"
		image_copy debian "$BATS_TEST_TMPDIR/rootfs"
		mkdir -p "$BATS_TEST_TMPDIR/rootfs/$compat"
		cp "$CTR_GPU_BUILD/test/stale/libcuda.so.1" "$BATS_TEST_TMPDIR/rootfs/$compat/libcuda.so.999.99"
		ln -s libcuda.so.999.99 "$BATS_TEST_TMPDIR/rootfs/$compat/libcuda.so.1"
		run sandbox wsl-nvidia unshare --mount bash -c '"$0" configure --cuda-compat-mode="$1" --device=all --compute "$2" &&
			grep -c compat /proc/self/mountinfo; exec chroot "$2" /usr/bin/probe' "$(cli)" "$mode" "$BATS_TEST_TMPDIR/rootfs"
		expect_gpu "$geforce"
		expect_line 0
		expect_line "library=/usr/lib/wsl/lib/libcuda.so.1"
	done
}

@test "it makes a known place of its process before it looks at the container" {
	image_copy debian "$BATS_TEST_TMPDIR/rootfs"
	cd "$BATS_TEST_TMPDIR"
	ASAN_OPTIONS=detect_leaks=0 run sandbox wsl-nvidia unshare --mount strace -o "$BATS_TEST_TMPDIR/trace" -e trace='!mmap,munmap,brk,mprotect' \
		"$(cli)" --debug=log configure --device=all "$BATS_TEST_TMPDIR/rootfs" 7</etc/passwd
	expect_status 0
	output=$(sed '/"[^"]*rootfs"\|\/dev\/dxg\|config\.json/,$d' <(tail -n +2 "$BATS_TEST_TMPDIR/trace"))
	for call in 'close_range(3, ' 'chdir("/")' 'umask(022)' 'prctl(PR_SET_NO_NEW_PRIVS, 1' 'prctl(PR_SET_DUMPABLE, SUID_DUMP_DISABLE' \
		'RLIMIT_CORE, {rlim_cur=0, rlim_max=0}' 'rt_sigprocmask(SIG_SETMASK, []' 'capset(' 'alarm(60)'; do
		expect "$call"
	done
	# A relative name is one of the directory that it was called in.
	[[ -s $BATS_TEST_TMPDIR/log ]]
}

@test "a variable of the environment names no file to write" {
	NVC_DEBUG_FILE=$BATS_TEST_TMPDIR/debug on wsl-nvidia info
	expect_status 0
	[[ ! -e $BATS_TEST_TMPDIR/debug ]]
}
