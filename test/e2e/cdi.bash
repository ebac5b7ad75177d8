# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2016,SC2154
#
# CDI specs in tests: written on the simulated host that uses them, and applied to bundles by hand where an engine cannot.

load engines

# podman_cdi PROFILE SCRIPT ARGUMENT…: `podman run ARGUMENT…` as root on a host on which SCRIPT ran before, as a rule to write a spec
podman_cdi() {
	local profile=$1 script=$2 directory
	shift 2

	directory=$(engine_directory podman)
	sandbox "$profile" env CONTAINERS_CONF="$directory/containers.conf" CONTAINERS_STORAGE_CONF="$directory/storage.conf" bash -c '
		eval "$1" || exit
		shift
		exec memlock podman run --cgroup-parent "$CTR_GPU_TEST_CGROUP" --rm "$@"
	' podman "$script" "$@"
}

# rootless_cdi PROFILE SCRIPT ARGUMENT…: the same as a user who is nobody special; SCRIPT runs as root
rootless_cdi() {
	local profile=$1 script=$2
	shift 2

	CTR_GPU_TEST_AS_ROOT=$script rootless "$profile" podman run --rm "$@"
}

# What CDI's library does with a device of a spec: nodes, rules, hooks, mounts, environment, into a config.json.
apply_spec='
	def node: {path: .path, type: "c", major: ($numbers[.path] | split(":")[0] | tonumber), minor: ($numbers[.path] | split(":")[1] | tonumber),
		fileMode: 438};
	def rule: {allow: true, type: "c", major: (node | .major), minor: (node | .minor), access: (.permissions // "rwm")};
	def edit($edits):
		.process.env += ($edits.env // [])
		| .linux.devices += [$edits.deviceNodes[]? | node]
		| .linux.resources.devices += [$edits.deviceNodes[]? | rule]
		| .mounts += [$edits.mounts[]? | {destination: .containerPath, source: .hostPath, options: .options}]
		| reduce $edits.hooks[]? as $hook (.; .hooks[$hook.hookName] += [$hook | del(.hookName)]);
	edit($spec.containerEdits // {})
	| reduce ($names | split(",")[]) as $name (.; edit($spec.devices[] | select(.name == $name) | .containerEdits))
	| .linux.devices |= unique_by(.path)
'

# cdi_bundle PROFILE RUNTIME DIRECTORY SCRIPT SPEC NAMES: run a bundle with these devices of a spec that SCRIPT wrote
cdi_bundle() {
	sandbox "$1" bash -c '
		eval "$3" || exit
		cd "$2" || exit
		numbers=$(jq -r "[.containerEdits, .devices[].containerEdits][].deviceNodes[]?.path" "$4" | sort -u | while read -r path; do
			printf "%s %d:%d\n" "$path" "0x$(stat -c %t "$path")" "0x$(stat -c %T "$path")"
		done | jq -R "split(\" \") | {(.[0]): .[1]}" | jq -s add)
		jq --arg path "$CTR_GPU_TEST_CGROUP/container" --slurpfile specs "$4" --arg names "$5" --argjson numbers "$numbers" \
			"\$specs[0] as \$spec | .linux.cgroupsPath = \$path | $6" config.json >config.new && mv config.new config.json || exit
		exec memlock "$1" --root /run/runtime run container
	' cdi_bundle "$2" "$3" "$4" "$5" "$6" "$apply_spec"
}
