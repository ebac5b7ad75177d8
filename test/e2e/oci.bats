#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# The hook as OCI runtimes call it, from a config.json that names it: runc and crun.

load engines

setup_file() {
	require_root
	require_program runc
	require_program crun
	image debian >/dev/null
}

# start PROFILE RUNTIME [JQ-FILTER]: a fresh bundle of the debian image, run to its end
start() {
	rm -rf "$BATS_TEST_TMPDIR/bundle"
	bundle debian "$BATS_TEST_TMPDIR/bundle" "${3:-.}"
	run run_bundle "$1" "$2" "$BATS_TEST_TMPDIR/bundle"
}

# The driver stores that a container sees, one per line.
stores_in() {
	start "$1" "$2" "$(visible "$3") | $(script 'ls /usr/lib/wsl/drivers')"
}

gpu_on_nvidia() {
	start wsl-nvidia "$1"
	expect_status 0
	expect_line "/dev/dxg=ok"
	expect_line "cuInit=0"
	expect_line "device=NVIDIA GeForce RTX 4090"
	expect_line "library=$(store wsl-nvidia 0)/libcuda.so.1.1"
}

@test "a GPU on a WSL2 host" {
	both gpu_on_nvidia
}

# The hook cannot set a variable, and says which.
programs_of_nix() {
	local log=$BATS_TEST_TMPDIR/log variable

	variable=LD_LIBRARY_PATH=/usr/lib/wsl/lib:$(store wsl-nvidia 0)
	for environment in '[]' "[\"$variable\"]"; do
		rm -rf "$BATS_TEST_TMPDIR/bundle" "$log"
		bundle nix "$BATS_TEST_TMPDIR/bundle" ".process.env += $environment
			| .hooks |= map_values(map(.args |= .[:1] + [\"--debug=$log\"] + .[1:]))"
		run run_bundle wsl-nvidia "$1" "$BATS_TEST_TMPDIR/bundle"
		if [[ $environment == '[]' ]]; then
			expect_not "cuInit=0"
			grep -F "warning: programs that Nix built read no /etc/ld.so.cache: start the container with -e $variable, or" "$log"
		else
			expect_line "cuInit=0"
			[[ $(<"$log") != *Nix* ]]
		fi
	done
}

@test "programs of Nix: the hook says which variable they need" {
	both programs_of_nix
	jq 'del(.process.env[] | select(startswith("LD_")))' "$BATS_TEST_TMPDIR/bundle/config.json" >"$BATS_TEST_TMPDIR/config.json"
	mv "$BATS_TEST_TMPDIR/config.json" "$BATS_TEST_TMPDIR/bundle"
	jq -n --arg bundle "$BATS_TEST_TMPDIR/bundle" '{id: "c", status: "creating", pid: 1, bundle: $bundle}' >"$BATS_TEST_TMPDIR/state"
	run sandbox wsl-nvidia sh -c 'ctr-gpu-hook --dry-run createRuntime <"$0"' "$BATS_TEST_TMPDIR/state"
	[[ $(jq -r '.warnings[]' <<<"$output") == *"-e LD_LIBRARY_PATH=/usr/lib/wsl/lib:"* ]]
}

# dry_run PROFILE JQ-FILTER: the hook's plan for a container, and the filter's answer
dry_run() {
	rm -rf "$BATS_TEST_TMPDIR/bundle"
	bundle debian "$BATS_TEST_TMPDIR/bundle" "$2"
	jq -n --arg bundle "$BATS_TEST_TMPDIR/bundle" '{id: "c", status: "creating", pid: 1, bundle: $bundle}' >"$BATS_TEST_TMPDIR/state"
	run sandbox "$1" sh -c 'ctr-gpu-hook --dry-run createRuntime <"$0"' "$BATS_TEST_TMPDIR/state"
	expect_status 0
}

@test "variables that drivers need: the hook, which cannot set them, says so in its plan" {
	dry_run wsl-hybrid "$(visible 1) | .process.env += [\"NVIDIA_DRIVER_CAPABILITIES=all\", \"LIBVA_DRIVER_NAME=iHD\"]"
	[[ $(jq -c '.environment | map([.name, .setBy])' <<<"$output") == \
		'[["GALLIUM_DRIVER",["runtime","cdi"]],["MESA_D3D12_DEFAULT_ADAPTER_NAME",["runtime","cdi"]]]' ]]
	dry_run wsl-amd-npu "$(visible 0) | .process.env += [\"HSA_ENABLE_DXG_DETECTION=1\"]"
	[[ $(jq -c .environment <<<"$output") == "[]" ]]
	run sandbox wsl-hybrid ctr-gpu configure --dry-run --device 1 --graphics /srv
	expect_line "environment GALLIUM_DRIVER=d3d12 (by ctr-gpu-runtime or CDI; with the hook, by you: -e)"
}

says_what_is_missing() {
	local log=$BATS_TEST_TMPDIR/log

	rm -f "$log"
	start wsl-hybrid "$1" "$(visible 1) | $(script env) | .process.env += [\"NVIDIA_DRIVER_CAPABILITIES=all\", \"LIBVA_DRIVER_NAME=iHD\"]
		| .hooks |= map_values(map(.args |= .[:1] + [\"--debug=$log\"] + .[1:]))"
	expect_status 0
	expect_not d3d12
	grep -F "warning: some versions of Mesa render in software without it: start the container with -e GALLIUM_DRIVER=d3d12, or" "$log"
	grep -F 'start the container with -e "MESA_D3D12_DEFAULT_ADAPTER_NAME=Intel(R) Iris(R) Xe Graphics", or' "$log"
	[[ $(<"$log") != *LIBVA* ]]
}

@test "variables that drivers need: the hook's log says which the container lacks" {
	both says_what_is_missing
}

@test "the plan names what it outranks in the image" {
	local root=$BATS_TEST_TMPDIR/root

	cp -a "$(image debian)" "$root"
	mkdir -p "$root/opt/baked"
	cp "$CTR_GPU_BUILD"/test/hosts/files/lib-nvidia/lib{cuda.so.1,nvcuvid.so.1} "$root/opt/baked/"
	echo /opt/baked >"$root/etc/ld.so.conf"
	ldconfig -r "$root"
	run sandbox wsl-nvidia ctr-gpu configure --dry-run --json "$root"
	[[ $(jq -c '[.outranked[] | [.path, .by]] | sort' <<<"$output") == \
		'[["/opt/baked/libcuda.so.1","/usr/lib/wsl/lib/libcuda.so.1"],["/opt/baked/libnvcuvid.so.1","/usr/lib/wsl/lib/libnvcuvid.so.1"]]' ]]
	run sandbox wsl-nvidia ctr-gpu configure --dry-run "$root"
	expect_line "outranked   /opt/baked/libcuda.so.1 by /usr/lib/wsl/lib/libcuda.so.1"
	# Where they are given already, they are the driver's own.
	sandbox wsl-nvidia sh -c 'ctr-gpu configure "$0" && ctr-gpu configure --dry-run --json "$0"' "$root" >"$BATS_TEST_TMPDIR/plan"
	[[ $(jq -c .outranked "$BATS_TEST_TMPDIR/plan") == "[]" ]]
}

gpu_without_libdxcore() {
	start hyperv-no-libdxcore "$1" ".process.env += [\"NVIDIA_DRIVER_CAPABILITIES=utility\"] | $(script 'ls /usr/lib/wsl/drivers; probe open /dev/dxg')"
	expect_status 0
	expect_line "$(basename "$(store hyperv-no-libdxcore 0)")"
	expect_line "/dev/dxg=ok"
}

@test "a GPU on a Hyper-V guest without libdxcore" {
	both gpu_without_libdxcore
}

stores_of_hybrid() {
	stores_in wsl-hybrid "$1" all
	expect_status 0
	[[ $(sort <<<"$output") == $(stores wsl-hybrid | xargs -n 1 basename | sort) ]]
	stores_in wsl-hybrid "$1" 0
	[[ $(grep -c . <<<"$output") -eq 1 ]]
}

@test "a laptop with two vendors: all adapters, or the one that is asked for" {
	both stores_of_hybrid
}

stores_of_two() {
	stores_in wsl-two-nvidia "$1" all
	expect_status 0
	[[ $(sort <<<"$output") == $(stores wsl-two-nvidia | xargs -n 1 basename | sort -u) ]]
	stores_in wsl-two-nvidia "$1" 0
	expect_line "$(basename "$(store wsl-two-nvidia 0)")"
	[[ $(grep -c . <<<"$output") -eq 1 ]]
	stores_in wsl-two-nvidia "$1" 1
	expect_line "$(basename "$(store wsl-two-nvidia 1)")"
	[[ $(grep -c . <<<"$output") -eq 1 ]]
}

@test "two NVIDIA adapters: both stores, or the one that is asked for" {
	both stores_of_two
}

rules() {
	start wsl-nvidia "$1" "$(script 'probe node 10 183 /tmp/gpu; probe node 10 229 /tmp/fuse') | .process.capabilities.bounding += [\"CAP_MKNOD\"]
		| .process.capabilities.effective += [\"CAP_MKNOD\"] | .process.capabilities.permitted += [\"CAP_MKNOD\"]
		| .linux.resources.devices += [{\"allow\": true, \"type\": \"c\", \"access\": \"m\"}]"
	expect_line "/tmp/gpu=ok"
	expect_line "/tmp/fuse=EPERM"
}

# bats test_tags=kernel, cgroup
@test "the device rule is for the GPU and nothing else" {
	both rules
}

nothing() {
	local script='ls /dev; ls /usr/lib; probe node 10 183 /tmp/gpu; find /etc -newer /proc/1/stat'

	start wsl-nvidia "$2" "$1 | $(script "$script") | .process.capabilities.bounding += [\"CAP_MKNOD\"]
		| .process.capabilities.effective += [\"CAP_MKNOD\"] | .process.capabilities.permitted += [\"CAP_MKNOD\"]
		| .linux.resources.devices += [{\"allow\": true, \"type\": \"c\", \"access\": \"m\"}]"
	expect_line "/tmp/gpu=EPERM"
	expect_not "dxg"
	expect_not "wsl"
	[[ ! -e $BATS_TEST_TMPDIR/bundle/rootfs/usr/lib/wsl ]]
	cmp "$BATS_TEST_TMPDIR/bundle/rootfs/etc/ld.so.cache" "$(image debian)/etc/ld.so.cache"
}

# bats test_tags=cgroup
@test "no NVIDIA_VISIBLE_DEVICES: as if the hook were not there" {
	both nothing '.process.env = ["PATH=/usr/bin"]'
}

@test "NVIDIA_VISIBLE_DEVICES=void: as if the hook were not there" {
	both nothing "$(visible void)"
}

@test "NVIDIA_VISIBLE_DEVICES empty: as if the hook were not there" {
	both nothing "$(visible '')"
}

libraries_only() {
	start wsl-nvidia "$1" "$(visible none) | $(script 'ls /usr/lib/wsl/lib; probe')"
	expect_line "libcuda.so.1"
	expect_line "/dev/dxg=ENOENT"
}

@test "NVIDIA_VISIBLE_DEVICES=none: libraries, no device" {
	both libraries_only
}

read_only() {
	start wsl-nvidia "$1" '.root.readonly = true'
	expect_status 0
	expect_line "cuInit=0"
}

# bats test_tags=kernel
@test "a read-only root filesystem" {
	both read_only
}

other_stage() {
	start wsl-nvidia "$1" '.hooks = {"createRuntime": [.hooks.prestart[0] | .args[1] = "createRuntime"]}'
	expect_status 0
	expect_line "cuInit=0"
}

# bats test_tags=cgroup
@test "as a createRuntime hook" {
	both other_stage
}

inner_stage() {
	start wsl-nvidia "$1" '.hooks = {"createContainer": [.hooks.prestart[0] | .args[1] = "createContainer"]}'
	[[ $status -ne 0 ]]
	expect_not "cuInit"
	# crun does not show what a hook says.
	[[ $1 == crun ]] || expect "[E_BAD_ARGUMENT] createContainer hooks run inside the container's namespaces"
	[[ $1 == crun ]] || expect "createRuntime"
}

@test "as a createContainer hook it refuses and says which stage to use" {
	both inner_stage
}

absolute_root() {
	rm -rf "$BATS_TEST_TMPDIR/bundle" "$BATS_TEST_TMPDIR/elsewhere"
	bundle debian "$BATS_TEST_TMPDIR/bundle"
	mv "$BATS_TEST_TMPDIR/bundle/rootfs" "$BATS_TEST_TMPDIR/elsewhere"
	jq --arg path "$BATS_TEST_TMPDIR/elsewhere" '.root.path = $path' "$BATS_TEST_TMPDIR/bundle/config.json" >"$BATS_TEST_TMPDIR/new"
	mv "$BATS_TEST_TMPDIR/new" "$BATS_TEST_TMPDIR/bundle/config.json"
	run run_bundle wsl-nvidia "$1" "$BATS_TEST_TMPDIR/bundle"
	expect_line "cuInit=0"
}

@test "a root filesystem outside the bundle" {
	both absolute_root
}

hostile_environment() {
	start wsl-nvidia "$1" '.hooks.prestart[0].env = ["LD_PRELOAD=/nonexistent/evil.so", "LD_LIBRARY_PATH=/nonexistent", "PATH=",
		"GCONV_PATH=/nonexistent", "MALLOC_TRACE=/nonexistent", "NVIDIA_VISIBLE_DEVICES=7"]'
	expect_status 0
	expect_line "cuInit=0"
}

@test "the hook's own environment changes nothing" {
	both hostile_environment
}

# The runtime takes the container away; what the hook did goes with it: mounts with the namespace, rules with the cgroup.
killed_when_done() {
	rm -rf "$BATS_TEST_TMPDIR/bundle"
	bundle debian "$BATS_TEST_TMPDIR/bundle" \
		".hooks.prestart[0] |= {path: \"/bin/sh\", args: [\"sh\", \"-c\", \"\(.path) prestart && touch /run/done; kill -KILL \$\$\"]}"
	run sandbox wsl-nvidia bash -c '
		cd "$2" && jq --arg path "$CTR_GPU_TEST_CGROUP/container" ".linux.cgroupsPath = \$path" config.json >new && mv new config.json || exit 99
		picture() {
			cut -d " " -f 3- /proc/self/mountinfo | sort
			find /run /etc /usr/lib/wsl /usr/bin /var/lib/ctr-gpu -xdev -path /run/runtime -prune -o -name done -o -newer config.json ! -type d -print
			find /sys/fs/cgroup -type d -path "*$CTR_GPU_TEST_CGROUP/*container*"
			ps -eo comm= | grep -E "^(ctr-gpu|probe)"
		}
		picture >../before
		memlock "$1" --root /run/runtime run container
		echo "status $?"
		[[ ! -e /run/done ]] || echo "was done"
		"$1" --root /run/runtime list --quiet
		picture | diff ../before - && echo same' killed "$1" "$BATS_TEST_TMPDIR/bundle"
	expect_no_line "status 0"
	expect_line "was done"
	expect_no_line container
	expect_line same
	expect_not "cuInit"
	start wsl-nvidia "$1"
	expect_line "cuInit=0"
}

# bats test_tags=cgroup
@test "a hook that is killed when its work is done leaves nothing on the host" {
	both killed_when_done
}
