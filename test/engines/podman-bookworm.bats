#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# A release's Podman, as root and as a user, with GPU-PV and with a native driver. Our hook is found where it is installed.

load ../e2e/cdi

generate="ctr-gpu cdi generate >/dev/null"

setup_file() {
	require_root
	use_tree
	podman_setup
}

@test "the engine is the release's" {
	run podman_in - --version
	expect "$(tree_version podman)"
	run podman_in - info --format '{{.Host.CgroupsVersion}}'
	expect_line "v$(cgroup_version)"
}

@test "hooks.d, with crun" {
	run podman_in wsl-nvidia run --runtime crun --rm -e NVIDIA_VISIBLE_DEVICES=all debian probe
	expect_gpu
}

@test "hooks.d, with runc" {
	run podman_in wsl-nvidia run --runtime runc --rm -e NVIDIA_VISIBLE_DEVICES=all debian probe
	expect_gpu
}

@test "--runtime nvidia-container-runtime" {
	run podman_in wsl-nvidia run --runtime /usr/bin/nvidia-container-runtime --rm -e NVIDIA_VISIBLE_DEVICES=all debian probe
	expect_gpu
}

@test "CDI" {
	local runtime device

	for runtime in crun runc; do
		run podman_cdi wsl-nvidia "$generate" --runtime "$runtime" --device nvidia.com/gpu=all debian probe
		expect_gpu
	done
	for device in 0 LUID-000000005a3f1c2b 0000:01:00.0; do
		run podman_cdi wsl-nvidia "$generate" --device "nvidia.com/gpu=$device" debian probe
		expect_gpu
	done
}

# expect_of_gpus_option EXPECTATION…: Podman 4 takes --gpus and does nothing about it
expect_of_gpus_option() {
	if [[ $(tree_version podman) == 4.* ]]; then
		expect_not "cuInit"
	else
		"$@"
	fi
}

@test "--gpus, with CDI" {
	run podman_cdi wsl-nvidia "$generate" --gpus all debian probe
	expect_of_gpus_option expect_gpu
	run podman_cdi native-four "$generate" --gpus 2 debian sh -c 'ls /dev; probe'
	expect_of_gpus_option expect_native 1
	expect_of_gpus_option expect_line nvidia2
}

@test "--gpus, with CDI and GPUs of AMD, as doctor says" {
	run sandbox native-amd bash -c 'ctr-gpu cdi generate >/dev/null; ctr-gpu doctor | grep " Podman "'
	if [[ $(tree_version podman) == [45].* ]]; then
		expect "--device amd.com/gpu=all"
		expect_not "--gpus all"
		return
	fi
	expect "yes by --gpus all"
	run podman_cdi native-amd "$generate" --gpus all debian ls /dev /dev/dri
	expect_line kfd
	expect_line renderD128
}

@test "a container that asks for nothing gets nothing" {
	run podman_in wsl-nvidia run --rm --cap-add MKNOD debian sh -c 'ls /usr/lib; probe node 10 183 /tmp/node; probe'
	expect_line "/tmp/node=EPERM"
	expect_no_line wsl
	expect_no_gpu
}

# crun has been in another mount namespace by then, and tells its hooks that the bundle is "/".
@test "a user namespace with a device of its own, with a GPU and without" {
	run podman_in wsl-no-adapter run --rm --uidmap 0:100000:65536 --device /dev/fuse debian sh -c 'echo started'
	expect_line "started"
	run podman_in wsl-nvidia run --rm --uidmap 0:100000:65536 --device /dev/fuse -e NVIDIA_VISIBLE_DEVICES=all debian probe
	expect_gpu
}

@test "rootless: --userns keep-id with a CDI device, and our hook beside it" {
	run rootless_cdi wsl-nvidia "$generate" --userns keep-id --device nvidia.com/gpu=all debian probe
	expect_gpu
}

@test "the device rule is for the GPU and nothing else" {
	run podman_in wsl-nvidia run --rm --cap-add MKNOD -e NVIDIA_VISIBLE_DEVICES=all debian \
		sh -c 'probe node 10 183 /tmp/gpu; probe node 10 229 /tmp/fuse'
	expect_line "/tmp/gpu=ok"
	expect_line "/tmp/fuse=EPERM"
}

@test "native: all GPUs" {
	run podman_in native-four run --rm -e NVIDIA_VISIBLE_DEVICES=all debian probe
	expect_native 4
}

@test "native: one GPU, and no way to another" {
	run podman_in native-four run --rm --cap-add MKNOD -e "NVIDIA_VISIBLE_DEVICES=$(native_uuid 2)" debian \
		sh -c 'ls /dev; probe node 195 1 /tmp/other; probe node 195 2 /tmp/own; probe'
	expect_native 1
	expect_no_other
}

@test "native: CDI, two GPUs and no way to another" {
	run podman_cdi native-four "$generate" --cap-add MKNOD --device nvidia.com/gpu=1 --device "nvidia.com/gpu=$(native_uuid 2)" \
		debian sh -c 'ls /dev; probe node 195 0 /tmp/other; probe node 195 2 /tmp/own; probe'
	expect_native 2
	expect_line nvidia1
	expect_no_other
}

@test "rootless: hooks.d, with crun" {
	run rootless wsl-nvidia podman --runtime crun run --rm -e NVIDIA_VISIBLE_DEVICES=all debian probe
	expect_gpu
}

@test "rootless: hooks.d, with runc" {
	run rootless wsl-nvidia podman --runtime runc run --rm -e NVIDIA_VISIBLE_DEVICES=all debian probe
	expect_gpu
}

@test "rootless: --runtime nvidia-container-runtime" {
	run rootless wsl-nvidia podman --runtime /usr/bin/nvidia-container-runtime run --rm -e NVIDIA_VISIBLE_DEVICES=all debian probe
	expect_gpu
}

@test "rootless: CDI" {
	run rootless_cdi wsl-nvidia "$generate" --device nvidia.com/gpu=all debian probe
	expect_gpu
}

@test "rootless: --gpus, with CDI" {
	run rootless_cdi wsl-nvidia "$generate" --gpus all debian probe
	expect_of_gpus_option expect_gpu
}

@test "rootless, native: CDI, one GPU and no node of another" {
	run rootless_cdi native-four "$generate" --device nvidia.com/gpu=3 debian sh -c 'ls /dev; probe'
	expect_native 1
	expect_line nvidia3
	expect_no_line nvidia0
}

@test "rootless: a container that asks for nothing gets nothing" {
	run rootless wsl-nvidia podman run --rm debian sh -c 'ls /usr/lib; probe'
	expect_no_line wsl
	expect_no_gpu
}

@test "rootless, native: one GPU, and no node of another" {
	run rootless native-four podman run --rm -e NVIDIA_VISIBLE_DEVICES=1 debian sh -c 'ls /dev; probe'
	expect_native 1
	expect_line nvidia1
	expect_no_line nvidia0
}

# Which files those are, and which of them counts, changed with its versions 5 and 6.
@test "doctor looks for the hook where Podman does, whatever files say so" {
	local step

	# shellcheck disable=SC2016 # for the inner shell
	run sandbox wsl-nvidia env -u CONTAINERS_CONF HOME=/root bash -ec '
		mv /usr/share/containers/oci/hooks.d/ctr-gpu.json /run
		say() { mkdir -p "${1%/*}"; printf "[engine]\nhooks_dir = [\"%s\"]\n" "/run/hooks/$2" >"$1"; }
		as=()
		compare() {
			directory=$("${as[@]}" podman --help | sed -n "s/.*--hooks-dir.*(default \[\([^]]*\)\]).*/\1/p")
			rm -rf /run/hooks
			mkdir -p "$directory" /run/hooks/{usr,usr-part,etc,etc-part,root,root-part,rootful,rootless,rootless-part,user,home}
			cp /run/ctr-gpu.json "$directory"
			echo "$1, $directory, $("${as[@]}" ctr-gpu doctor | sed -n "s/.* \(Podman [0-9.]*: \)/\1/p")"
			rm "$directory/ctr-gpu.json"
		}
		say /usr/share/containers/containers.conf usr; compare usr
		say /etc/containers/containers.conf.d/50.conf etc-part; compare etc-part
		rm /etc/containers/containers.conf.d/50.conf; echo "[engine]" >/etc/containers/containers.conf; compare "empty etc"
		say /usr/share/containers/containers.conf.d/60.conf usr-part; compare usr-part
		say /etc/containers/containers.conf.d/60.conf etc-part; compare "etc-part of one name"
		say /root/.config/containers/containers.conf.d/55.conf root-part; compare root-part
		say /root/.config/containers/containers.conf root; compare root
		say /etc/containers/containers.rootful.conf.d/99.conf rootful; compare rootful
		mkdir /run/home; chown 54321 /run/home; chmod 755 /run
		as=(setpriv --reuid 54321 --regid 54321 --clear-groups env HOME=/run/home XDG_RUNTIME_DIR=/run/home)
		compare "a user"
		say /etc/containers/containers.rootless.conf rootless; compare rootless
		say /etc/containers/containers.rootless.conf.d/70.conf rootless-part; compare rootless-part
		say /etc/containers/containers.rootless.conf.d/54321/65.conf user; compare user
		say /run/home/.config/containers/containers.conf.d/55.conf home; compare home'
	expect_status 0
	for step in usr etc-part "empty etc" usr-part "etc-part of one name" root-part root rootful \
		"a user" rootless rootless-part user home; do
		grep "^$step, /.*, Podman .*: yes by .*NVIDIA_VISIBLE_DEVICES" <<<"$output"
	done
}
