#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016
#
# Our hook under the name nvidia-cdi-hook, by which specs of nvidia-ctk have engines run it at the stage createContainer: in
# the container's namespaces, before its root is changed to.

load cdi

setup_file() {
	local directory name

	require_root
	require_program podman
	require_program newuidmap
	directory=$(engine_directory podman)
	podman_configure "$directory"
	rm "$directory"/hooks/*
	for name in debian fedora-like no-cache baked; do
		tar -C "$(image "$name")" -c . | podman_in - import --quiet - "$name" >/dev/null
	done
	directory=$(engine_directory rootless)
	XDG_RUNTIME_DIR=/run/user/54321 podman_configure "$directory"
	sed -i "s,$directory,/run/home,g" "$directory"/*.conf
	rm "$directory"/hooks/*
	tar -C "$(image debian)" -c . | rootless - podman import --quiet - debian >/dev/null
}

# A spec as nvidia-ctk 1.17 writes it: libraries under their files' names, links and cache by hooks, at $hook. LeakSanitizer
# cannot look at a process of another pid namespace than that of /proc.
nvidia_spec='
	mkdir -p /etc/cdi
	libraries=/usr/lib/$(gcc -print-multiarch)
	{
		printf "%s\n" --- "cdiVersion: 0.5.0" "kind: nvidia.com/gpu" "devices:" "- name: \"0\"" "  containerEdits:" "    deviceNodes:" \
			"    - path: /dev/nvidia0" "- name: all" "  containerEdits:" "    deviceNodes:" "    - path: /dev/nvidia0" \
			"containerEdits:" "  env:" "  - NVIDIA_VISIBLE_DEVICES=void" "  deviceNodes:" "  - path: /dev/nvidiactl" \
			"  - path: /dev/nvidia-uvm" "  hooks:"
		hook() {
			printf "%s\n" "  - hookName: ${stage:-createContainer}" "    path: $hook" "    args:" "    - nvidia-cdi-hook"
			printf "    - %s\n" "$@"
			printf "%s\n" "    env:" "    - NVIDIA_CTK_DEBUG=false" "    - ASAN_OPTIONS=detect_leaks=0"
		}
		hook create-symlinks --link "../libnvidia-allocator.so.1::$libraries/gbm/nvidia-drm_gbm.so" --link "libcuda.so.1::$libraries/libcuda.so"
		hook enable-cuda-compat --host-driver-version=580.159.04
		hook update-ldcache --folder "$libraries" --ldconfig-path /none
		hook disable-device-node-modification
		hook something-new --with option
		printf "%s\n" "  mounts:"
		for file in "$libraries"/lib{cuda,nvidia-ml,nvidia-ptxjitcompiler,nvidia-allocator}.so.580.159.04; do
			[[ ! -e $file ]] || printf "%s\n" "  - hostPath: $file" "    containerPath: $file" "    options: [ro, nosuid, nodev, rbind, rprivate]"
		done
	} >/etc/cdi/nvidia.yaml
'

as_root=hook=$CTR_GPU_BUILD/bin/nvidia-cdi-hook$'\n'$nvidia_spec
library=$(multiarch_directory)/libcuda.so.580.159.04

expect_gpu() {
	expect_status 0
	expect_line "cuInit=0"
	expect_line "library=$library"
}

in_image() {
	local runtime

	for runtime in runc crun; do
		echo "with $runtime:"
		run podman_cdi native-nvidia "$as_root" --runtime "$runtime" --device nvidia.com/gpu=all "$1" "${@:2}"
		[[ $# -gt 2 ]] || expect_gpu
	done
}

@test "an image with a loader cache" {
	in_image debian probe
}

@test "the hooks of a spec may be for the stage createRuntime, which runs in the host's namespaces" {
	as_root=stage=createRuntime$'\n'$as_root
	in_image debian probe
	in_image no-cache probe
}

@test "an image that looks for libraries elsewhere" {
	in_image fedora-like probe
}

@test "an image without a loader cache" {
	in_image no-cache probe
}

@test "an image with a driver of its own" {
	in_image baked probe
}

@test "links are made, missing SONAMEs too; a library that the image has under such a name stays" {
	in_image debian sh -c 'cd '"$(dirname "$library")"' && ls -l gbm/ libcuda.so libcuda.so.1'
	expect "nvidia-drm_gbm.so -> ../libnvidia-allocator.so.1"
	expect "libcuda.so -> libcuda.so.1"
	expect "libcuda.so.1 -> libcuda.so.580.159.04"
	in_image baked sh -c 'cd '"$(dirname "$library")"' && ls -l libcuda.so.1'
	expect_not "->"
}

@test "rootless" {
	local runtime

	for runtime in runc crun; do
		run rootless_cdi native-nvidia "hook=/run/ctr-gpu/bin/nvidia-cdi-hook$nvidia_spec" --runtime "$runtime" --device nvidia.com/gpu=0 debian probe
		expect_gpu
	done
}

@test "our check reads such a spec whole" {
	run sandbox native-nvidia bash -c "$as_root"'ctr-gpu cdi check --engine podman:4.3'
	expect_status 0
	expect "nvidia.com/gpu=all"
	expect 'has no "timeout"'
	run sandbox native-nvidia bash -c "$as_root"'sed -i "/NVIDIA_CTK_DEBUG/d; /ASAN_OPTIONS/d; /^    env:/d; s/\/dev\/nvidia0/\/dev\/nvidia7/" /etc/cdi/nvidia.yaml; ctr-gpu cdi check'
	expect_status 1
	expect 'has no "env"'
	expect "the device node /dev/nvidia7 is not there"
	run sandbox native-nvidia bash -c "$as_root"'sed -i "s/hookName/hookname/" /etc/cdi/nvidia.yaml; ctr-gpu cdi check'
	expect_status 1
	expect 'containerEdits.hooks[0] has the field "hookname"'
}

# ---- without an engine: a mount namespace, and a bundle in it ----

# called IMAGE-COMMANDS ARGUMENT…: the hook as a child of a container's first process; prints what it says, then what $tell says.
# $mounts is what the runtime has mounted by then.
called() {
	local commands=$1 bundle=$BATS_TEST_TMPDIR/bundle
	shift

	rm -rf "$bundle"
	mkdir -p "$bundle"
	image_copy debian "$bundle/rootfs"
	(cd "$bundle/rootfs" && eval "$commands")
	echo '{"root": {"path": "rootfs"}, "process": {"env": []}}' >"$bundle/config.json"
	# shellcheck disable=SC2034 # of the tests
	outside=$(find "$BATS_TEST_TMPDIR" -path "$bundle/rootfs" -prune -o ! -path "$bundle/ctr-gpu.layer" -printf '%p %s %y %m\n' | sort)
	run unshare --mount --propagation private bash -c 'bundle=$1; shift
		eval "${mounts-}"
		printf "{\"ociVersion\": \"1.0\", \"id\": \"x\", \"status\": \"creating\", \"pid\": 0, \"bundle\": \"%s\"}" "$bundle" | "$@"
		status=$?; eval "$tell"; exit $status' called "$bundle" "$CTR_GPU_BUILD/bin/nvidia-cdi-hook" "$@"
	[[ $outside == "$(find "$BATS_TEST_TMPDIR" -path "$bundle/rootfs" -prune -o ! -path "$bundle/ctr-gpu.layer" -printf '%p %s %y %m\n' | sort)" ]]
}

@test "what is not known warns and succeeds" {
	called : something-new --option value
	expect_status 0
	expect "Unsupported CDI hook: something-new"
	called :
	expect_status 0
	expect "no CDI hook is named"
	called : noop
	expect_status 0
	[[ -z $output ]]
	called : enable-cuda-compat --host-driver-version=580
	expect_status 0
	expect "never used"
	run "$CTR_GPU_BUILD/bin/nvidia-cdi-hook" --version
	expect_status 0
	run "$CTR_GPU_BUILD/bin/nvidia-cdi-hook" --help
	expect_status 0
	expect "Usage: nvidia-cdi-hook "
}

@test "a state that is none is refused, except for what is not known" {
	run "$CTR_GPU_BUILD/bin/nvidia-cdi-hook" update-ldcache --folder /usr/lib <<<'{'
	expect_status 1
	expect "[E_BAD_STATE]"
	run "$CTR_GPU_BUILD/bin/nvidia-cdi-hook" something-new <<<'{'
	expect_status 0
}

@test "options are written in several ways" {
	export tell='ls -l "$bundle/rootfs/opt"'
	called : --debug create-symlinks --link a::/opt/1 --link=b::/opt/2 -link c::/opt/3 -link=d::/opt/4 --links x::/opt/5
	expect_status 0
	expect "1 -> a"
	expect "2 -> b"
	expect "3 -> c"
	expect "4 -> d"
	expect_not "5 -> x"
	called : create-symlinks --link nonsense --link ::/a --link a::relative --link a::/opt/6::b
	expect_status 0
	expect '"nonsense" is not TARGET::LINK'
	expect '"a::/opt/6::b" is not TARGET::LINK'
}

@test "create-symlinks replaces links and files of an image, and nothing through them" {
	mkdir -p "$BATS_TEST_TMPDIR/host"
	echo mine >"$BATS_TEST_TMPDIR/host/file"
	export tell='cd "$bundle/rootfs/opt"; for name in *; do echo "$name: $(readlink "$name" || stat -c %F "$name")"; done; ls -A | grep "^\.ctr" || true'
	called 'mkdir -p opt/directory; echo x >opt/file; ln -s old opt/link; ln -s /gone opt/dangling; ln -s new opt/same
		ln -s '"$BATS_TEST_TMPDIR"'/host/file opt/outside' create-symlinks \
		--link new::/opt/file --link new::/opt/link --link new::/opt/dangling --link new::/opt/same --link new::/opt/outside --link new::/opt/directory
	expect_status 0
	for name in file link dangling same outside; do
		expect_line "$name: new"
	done
	expect_line "directory: directory"
	expect "no symlink /opt/directory: a directory is there"
	expect_not ".ctr-gpu-"
	[[ $(<"$BATS_TEST_TMPDIR/host/file") == mine ]]
	# What the engine mounted stays, and so does what is on a volume.
	export mounts='mount --bind "$bundle/../host/file" "$bundle/rootfs/opt/file"; mkdir "$bundle/rootfs/opt/volume"; mount --bind "$bundle/../host" "$bundle/rootfs/opt/volume"'
	called 'mkdir -p opt; echo x >opt/file' create-symlinks --link new::/opt/file --link new::/opt/volume/file
	expect_status 0
	expect "no symlink /opt/file: something is mounted there"
	expect "no symlink /opt/volume/file: its directory is a volume"
	[[ $(<"$BATS_TEST_TMPDIR/host/file") == mine && ! -L $BATS_TEST_TMPDIR/host/file ]]
}

@test "create-soname-symlinks makes links and writes no cache" {
	mkdir "$BATS_TEST_TMPDIR/host"
	cp "$CTR_GPU_BUILD/test/stale/libcuda.so.1" "$BATS_TEST_TMPDIR/host/libcuda.so.9"
	export image tell='cd "$bundle/rootfs"; cmp etc/ld.so.cache "$image/etc/ld.so.cache" && echo untouched; readlink opt/lib/libcuda.so.1'
	image=$(image debian)
	export mounts='mount --bind "$bundle/../host/libcuda.so.9" "$bundle/rootfs/opt/lib/libcuda.so.9"'
	called 'mkdir -p opt/lib; touch opt/lib/libcuda.so.9' create-soname-symlinks --folder /opt/lib --ldconfig-path /none
	expect_status 0
	expect_line untouched
	expect_line libcuda.so.9
	# update-ldcache in its place writes one.
	called 'mkdir -p opt/lib; touch opt/lib/libcuda.so.9' update-ldcache --folder /opt/lib --ldconfig-path /none
	expect_no_line untouched
	expect_line libcuda.so.9
}

@test "an image that was made with another driver gets this one's names" {
	local root=$BATS_TEST_TMPDIR/root libraries

	libraries=$(multiarch_directory)
	image_copy debian "$root"
	ln -s libcuda.so.470.1.1 "$root$libraries/libcuda.so"
	ln -s libcuda.so.470.1.1 "$root$libraries/libcuda.so.1"
	echo x >"$root$libraries/libcuda.so.470.1.1"
	tar -C "$root" -c . | podman_in - import --quiet - old-driver >/dev/null
	run podman_cdi native-nvidia "$as_root" --runtime crun --device nvidia.com/gpu=0 old-driver sh -c "readlink -f $libraries/libcuda.so; probe"
	expect_gpu
	expect_line "$library"
}

@test "links of an image lead nowhere outside" {
	mkdir -p "$BATS_TEST_TMPDIR/host"
	called 'ln -s '"$BATS_TEST_TMPDIR"'/host out; ln -s ../../../../../../../../..'"$BATS_TEST_TMPDIR"'/host up' \
		create-symlinks --link a::/out/link --link a::/up/link --link a::/../../../../../../../../"$BATS_TEST_TMPDIR"/host/link
	[[ -z $(ls "$BATS_TEST_TMPDIR/host") ]]
	called 'rm -rf etc; ln -s '"$BATS_TEST_TMPDIR"'/host etc' update-ldcache --folder /usr/lib
	[[ -z $(ls "$BATS_TEST_TMPDIR/host") ]]
	called 'rm etc/ld.so.cache; mkfifo etc/ld.so.cache' update-ldcache --folder /usr/lib
	called 'mkdir x; mkfifo x/liba.so.1; ln -s /dev/zero x/libb.so.1; ln -s libc.so.1 x/libc.so.1' update-ldcache --folder /x
	expect_status 0
	called 'ln -s / usr/lib/r; ln -s /proc/self/fd/0 usr/lib/liba.so.9' update-ldcache --folder /usr/lib/r/r/r/usr/lib,/none --folder relative
	expect_status 0
}

# As a volume's filesystem may list names without an end.
@test "of a directory with very many libraries the list is not read to its end" {
	export mounts='mount -t tmpfs tmpfs "$bundle/rootfs/x"; (cd "$bundle/rootfs/x" && seq -f "liba%.0f.so.1" 100000 | xargs touch)
		set -- strace -f -qq -e trace=getdents64 -o "$bundle/rootfs/calls" "$@"'
	export tell='cut -d "(" -f 2 "$bundle/rootfs/calls" | sort | uniq -c | sort -n | tail -1 | (read -r count _ && [[ $count -gt 2 && $count -lt 30 ]] && echo few)'
	called 'mkdir x' update-ldcache --folder /x
	expect_status 0
	expect_line few
}

@test "chmod is for directories of /dev alone" {
	export tell='stat -c %a "$bundle/rootfs/opt" "$bundle/rootfs/dev/dri"'
	called 'mkdir -p opt dev/dri; chmod 700 opt dev/dri' chmod --mode 755 --path /opt --path /dev/dri
	expect_status 0
	[[ $(grep -c "^700$" <<<"$output") -eq 2 ]]
	expect "it stays as it is"
	called : chmod --mode 7777 --path /dev
	expect "the mode is missing or invalid"
	# As runtimes make /dev: a tmpfs of its own.
	export mounts='mount -t tmpfs dev "$bundle/rootfs/dev" && mkdir -m 700 "$bundle/rootfs/dev/dri"'
	called 'mkdir -p opt dev; chmod 700 opt' chmod --mode 755 --path /dev/dri --path /dev/../opt
	expect_status 0
	expect_line 755
	expect_line 700
}

@test "the profile names the GPUs whose nodes there are" {
	export tell='cat "$bundle/rootfs$(readlink "$bundle/rootfs/etc/nvidia/nvidia-application-profiles-rc.d/10-container.conf")"'
	called 'touch dev/nvidia0 dev/nvidia3 dev/nvidiactl' update-application-profile
	expect_status 0
	expect "0x9]"
}
