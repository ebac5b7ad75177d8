#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016
#
# A machine whose SELinux enforces Debian 13's policy, in a guest of its own (test/kernels/run selinux): the hook is installed, what
# starts containers is unconfined_t, and they are container_t. No policy knows /dev/dxg, or gives a container a device unasked: our
# module does. Nodes have the label that the policy has for them, as a udev would have given it.

load ../e2e/engines

installed=/opt/ctr-gpu/usr

setup_file() {
	require_root
	[[ $(getenforce) != Disabled ]]
	# What was written before there was a policy.
	restorecon -R /etc /usr/sbin/ctr-gpu-agent
	setenforce 1
	image debian >/dev/null
}

# on_host PROFILE COMMAND…: drivers are libraries, as on a native host, and nodes have the policy's labels. What was denied is in $denied.
on_host() {
	local profile=$1
	shift
	dmesg --clear
	run sandbox "$profile" bash -ec '
		if [[ -e /usr/lib/wsl/drivers ]]; then
			mount -o remount,bind,rw /usr/lib/wsl/drivers
			chcon -R -t lib_t /usr/lib/wsl
			mount -o remount,bind,ro /usr/lib/wsl/drivers
		fi
		restorecon -R /etc 2>/dev/null
		for node in /dev/dxg /dev/nvidia* /dev/dri/*; do
			[[ ! -c $node ]] || chcon "$(matchpathcon -n -m c "$node")" "$node"
		done
		exec "$@"' on_host "$@"
	echo "$output"
	denied=$(dmesg | grep -F "avc:" || true)
	echo "$denied"
	expect_status 0
	[[ $(getenforce) == Enforcing ]]
}

# nothing_denied: neither to the hook nor to the container. NVIDIA's nodes have no driver here, and the kernel asks whether it may load one.
nothing_denied() {
	run grep -E 'comm="ctr-gpu|comm="nvidia-|comm="probe' < <(grep -vF "{ module_request }" <<<"$denied")
	expect_status 1
}

# refused: by the policy alone, and only the container
refused() {
	expect_line "/dev/dxg=EACCES"
	expect_not "cuInit=0"
	grep -E 'comm="probe".* scontext=[^ ]*:container_t:[^ ]* tcontext=[^ ]* tclass=chr_file' <<<"$denied"
}

# A container may not write into the pipes of an unconfined_t.
script='probe >/tmp/out 2>&1; cat /proc/self/attr/current >>/tmp/out; true'

# start PROFILE: a container of runc
start() {
	local directory=$BATS_TEST_TMPDIR/bundle

	rm -rf "$directory"
	bundle debian "$directory" ".linux.cgroupsPath = \"/test\" | .hooks.prestart[0].path = \"$installed/bin/ctr-gpu-hook\"
		| .process.selinuxLabel = \"system_u:system_r:container_t:s0:c1,c2\"
		| .linux.mountLabel = \"system_u:object_r:container_file_t:s0:c1,c2\"
		| .process.args = [\"sh\", \"-c\", $(jq -n --arg script "$script" '$script')]"
	chcon -R -t container_file_t -l s0:c1,c2 "$directory/rootfs"
	on_host "$1" runc --root /run/runtime run --bundle "$directory" container
	output=$(tr '\0' '\n' <"$directory/rootfs/tmp/out")
	echo "$output"
}

# start_podman OPTION…: one of Podman's, which labels its containers by itself
start_podman() {
	local directory=$BATS_TEST_TMPDIR/podman

	mkdir "$directory"
	podman_configure "$directory" "$installed/bin/ctr-gpu-hook"
	on_host wsl-nvidia env CONTAINERS_CONF="$directory/containers.conf" CONTAINERS_STORAGE_CONF="$directory/storage.conf" bash -ec '
		tar -C "$1" -c . | podman import - debian >/dev/null
		podman run --name labelled --env NVIDIA_VISIBLE_DEVICES=all "${@:4}" debian sh -c "$2"
		podman cp labelled:/tmp/out "$3"' podman "$(image debian)" "$script" "$directory/out" "$@"
	output=$(tr '\0' '\n' <"$directory/out")
	echo "$output"
}

@test "SELinux: without the module the policy keeps the GPU from a container of runc" {
	start wsl-nvidia
	expect_line "system_u:system_r:container_t:s0:c1,c2"
	refused
}

@test "SELinux: without the module the policy keeps the GPU from a container of Podman, but for label=disable" {
	start_podman
	expect ":container_t:s0:c"
	refused
	rm -r "$BATS_TEST_TMPDIR/podman"
	start_podman --security-opt label=disable
	expect_not ":container_t:"
	expect_line "cuInit=0"
}

@test "SELinux: the module is loaded, as packages do it" {
	"$installed/share/ctr-gpu/selinux" load
	[[ $(getsebool ctr_gpu_containers) == "ctr_gpu_containers --> on" ]]
	[[ $(getsebool container_use_dri) == *"--> off" ]]
	[[ $(matchpathcon -n -m c /dev/dxg) == *:dri_device_t:* ]]
}

@test "SELinux: a node that is there has its label when the module is loaded" {
	mknod /dev/dxg c 10 183
	"$installed/share/ctr-gpu/selinux" load
	run stat --format %C /dev/dxg
	rm /dev/dxg
	expect ":dri_device_t:"
}

@test "SELinux: a container_t of runc gets its GPU, and nothing is denied" {
	start wsl-nvidia
	expect_line "system_u:system_r:container_t:s0:c1,c2"
	expect_line "/dev/dxg=ok"
	expect_line "cuInit=0"
	nothing_denied
}

@test "SELinux: a container_t of runc gets NVIDIA's nodes, and nothing is denied" {
	start native-nvidia
	expect_line "system_u:system_r:container_t:s0:c1,c2"
	expect_line "cuInit=0"
	nothing_denied
}

@test "SELinux: nodes that load makes have the policy's label" {
	on_host native-nvidia bash -c 'rm /dev/nvidia0; "$0" load; stat --format "%n %C" /dev/nvidia0' "$installed/bin/ctr-gpu"
	expect "/dev/nvidia0 "
	[[ $output == *:xserver_misc_device_t:* ]]
}

@test "SELinux: a container that Podman labels gets its GPU, and nothing is denied" {
	start_podman
	expect ":container_t:s0:c"
	expect_line "cuInit=0"
	nothing_denied
}

@test "SELinux: doctor names the boolean, and what a device lacks that has another label" {
	on_host wsl-nvidia bash -c '"$0" doctor -v || true' "$installed/bin/ctr-gpu"
	expect "containers may use /dev/dxg: ctr_gpu_containers is on"
	setsebool ctr_gpu_containers off
	on_host wsl-nvidia bash -c '"$0" doctor -v || true' "$installed/bin/ctr-gpu"
	expect "setsebool -P ctr_gpu_containers 1"
}

@test "SELinux: the boolean takes the permission back" {
	setsebool ctr_gpu_containers off
	start wsl-nvidia
	refused
	start native-nvidia
	expect_not "cuInit=0"
	grep -E 'comm="probe".* name="nvidia.* tcontext=[^ ]*:xserver_misc_device_t:[^ ]* tclass=chr_file' <<<"$denied"
}

@test "SELinux: unloaded, the policy is as it was" {
	"$installed/share/ctr-gpu/selinux" unload
	run getsebool ctr_gpu_containers
	[[ $status -ne 0 ]]
	[[ $(matchpathcon -n -m c /dev/dxg) == *:device_t:* ]]
}
