#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016,SC2154
#
# `ctr-gpu attach` and `detach`: a GPU for a container that runs, and afterwards nothing of it. Each test has a host of its
# own, with the engine in it, as `ctr-gpu` runs on the engine's machine.

load engines

setup_file() {
	require_root
	image debian >/dev/null
}

# What a container is: its mounts, what its cgroup says of the device, what is in its layer, and our files on the host.
# With it begins the shell of every test; the container's first process is in $pid, its command in $in.
lib='
	fail() { echo "FAILED: $*"; exit 1; }
	picture() {
		cut -d " " -f 3- "/proc/$pid/mountinfo"
		$in probe node 10 183 /dev/node | grep /dev/node
		$in busybox rm -f /dev/node
		$in sh -c "ls -l /usr/bin/nvidia-smi /usr/lib/wsl /usr/lib/ctr-gpu /etc/ld.so.conf.d 2>&1; md5sum /etc/ld.so.cache"
		find /run/ctr-gpu/attached /run/systemd/transient -type f 2>/dev/null
		[[ ! -e /run/user/54321/ctr-gpu ]] || find /run/user/54321/ctr-gpu -type f
	}
	remember() { picture >"$before"; }
	unchanged() { picture | diff "$before" -; }
	before=$(mktemp)
	# The loader cache stays in it, as it was.
	own_layer() { [[ -z $(docker diff one | grep -vxE "C /(tmp|etc|etc/ld.so.cache)") ]] || fail "the layer: $(docker diff one)"; }
'

# with_docker PROFILE SCRIPT: with a daemon of its own, and the container "one", which has no GPU
with_docker() {
	local directory

	directory=$(engine_directory "docker-$BATS_TEST_NUMBER")
	run sandbox "$1" env times="${times-}" bash -c "$lib"'
		directory=$1
		mkdir -p "$directory"
		dockerd --data-root "$directory/data" --exec-root /run/exec --pidfile /run/docker.pid --iptables=false \
			--ip6tables=false --bridge=none --cgroup-parent "$CTR_GPU_TEST_CGROUP" \
			--exec-opt native.cgroupdriver=cgroupfs >"$directory/log" 2>&1 &
		soon docker_answers || exit
		tar -C "$2" -c . | docker import - debian >/dev/null || exit
		docker run --detach --name one --network none debian sleep 600 >/dev/null || exit
		pid=$(docker inspect --format "{{.State.Pid}}" one)
		in="docker exec one"
		remember
		docker diff one
		eval "$3" || exit
		docker rm --force one >/dev/null
	' attach "$directory" "$(image debian)" "$2"
	expect_status 0
	expect_not "FAILED: "
}

# bats test_tags=cgroup
@test "docker: by name, by id and by process; what was given is taken back, from its layer, too" {
	with_docker wsl-nvidia '
		for name in one "$(docker inspect --format "{{.Id}}" one)" "$pid"; do
			ctr-gpu attach "$name" || fail attach
			$in probe
			$in probe node 10 183 /dev/node | grep "/dev/node=ok" || fail "no rule"
			$in busybox rm -f /dev/node
			$in nvidia-smi -L | grep "GPU 0:" || fail nvidia-smi
			ctr-gpu detach "$name" || fail detach
			unchanged || fail "it is not as before"
			own_layer
		done'
	expect_gpu
}

@test "the other one of two adapters, and a container that has the GPU by its start" {
	with_docker wsl-hybrid '
		ctr-gpu attach one --device 1 && $in ls /usr/lib/wsl/drivers || fail attach
		ctr-gpu attach one --device 0 2>&1 | grep "Name that GPU, too" || fail "no refusal"
		$in ls /usr/lib/wsl/drivers | grep -c inf
		ctr-gpu attach one --device 0,1 && $in ls /usr/lib/wsl/drivers | grep -c inf
		ctr-gpu detach one && unchanged || fail "it is not as before"
		docker run --detach --name two --network none --gpus all debian sleep 600 >/dev/null
		pid=$(docker inspect --format "{{.State.Pid}}" two) in="docker exec two"
		remember
		ctr-gpu attach two && $in probe | grep cuInit=0 || fail "attach two"
		ctr-gpu detach two
		unchanged && $in probe | grep cuInit=0 || fail "what it had by its start is gone"'
	[[ $(grep -cx "1" <<<"$output") -eq 1 && $(grep -cx "2" <<<"$output") -eq 1 ]]
}

# bats test_tags=cgroup
@test "a process that has the GPU open keeps it, but for --force" {
	with_docker wsl-nvidia '
		ctr-gpu attach one || fail attach
		docker exec --detach one sh -c "exec 3</dev/dxg; : >/tmp/open; exec sleep 611"
		soon $in ls /tmp/open || exit
		ctr-gpu detach one && fail "it was taken from a process"
		$in probe | grep cuInit=0 || fail "it is gone"
		ctr-gpu detach --force one || fail force
		unchanged || fail "it is not as before"'
	expect "[EBUSY] one: process"
	expect "(sleep) in the container has the GPU open (device 10:183), so it stays."
	expect "--force"
}

# As a container does that may mount.
# bats test_tags=cgroup
@test "a container that hinders detach by a mount over ours does not keep the GPU" {
	with_docker wsl-nvidia '
		ctr-gpu attach one || fail attach
		nsenter --target "$pid" --mount busybox mount -t tmpfs tmpfs /usr/lib/wsl || fail mount
		ctr-gpu detach --force one && fail "it has all mounts"
		$in probe node 10 183 /dev/node | grep "/dev/node=ok" && fail "it has the GPU"
		$in busybox rm -f /dev/node
		find /run/ctr-gpu -name outside-done | grep . || fail "another try would take back what others have by then"
		nsenter --target "$pid" --mount busybox umount /usr/lib/wsl || fail umount
		ctr-gpu detach one || fail "a second try"
		unchanged || fail "it is not as before"'
	expect "stays, which was made for the container"
	expect "the container has no GPU any more"
}

# Where its cgroup allows all devices, the mount is all that it has of the GPU.
# bats test_tags=cgroup
@test "an exclusive GPU that detach cannot take from a container stays that container's" {
	with_docker native-nvidia '
		mode() { ctr-gpu assign --json | jq -r ".gpus[0] | .mode + \": \" + (.containers | map(.name // .id // \"?\") | join(\"+\"))"; }
		docker rm --force one >/dev/null
		docker run --detach --name one --network none --device-cgroup-rule "a *:* rwm" debian sleep 600 >/dev/null || fail start
		docker run --detach --name two --network none debian sleep 600 >/dev/null || fail "start two"
		pid=$(docker inspect --format "{{.State.Pid}}" one)
		remember
		ctr-gpu assign 0 --exclusive >/dev/null || fail assign
		ctr-gpu attach --device 0 one || fail attach
		[[ $(jq -c .running.additions /run/ctr-gpu/attached/*/0/deeds.json) == "[]" ]] || fail "its cgroup was changed"
		nsenter --target "$pid" --mount busybox mount --bind /dev/null /dev/nvidia0 || fail mount
		ctr-gpu detach one && fail "its node stays"
		nsenter --target "$pid" --mount busybox umount /dev/nvidia0 || fail umount
		$in busybox test -c /dev/nvidia0 || fail "it is gone"
		[[ $(mode) == "exclusive: one" ]] || fail "it is free: $(mode)"
		ctr-gpu attach --device 0 two && fail "two have it"
		ctr-gpu detach one || fail "a second try"
		unchanged || fail "it is not as before"
		[[ $(mode) == "exclusive: " ]] || fail "it is not free: $(mode)"
		ctr-gpu attach --device 0 two || fail "two, when it is free"
		docker rm --force two >/dev/null'
	expect "stays, which was made for the container"
	expect "may still have the GPU"
	expect_not "no GPU any more"
	expect "[E_EXCLUSIVE] two: GPU 0 "
}

# Where its cgroup is its own to write, as of a privileged container.
# bats test_tags=cgroup
@test "a container that moves down its cgroup does not keep the GPU" {
	with_docker wsl-nvidia '
		ctr-gpu attach one || fail attach
		cgroup=/sys/fs/cgroup$(sed -n s/^0:://p "/proc/$pid/cgroup")
		[[ -e /sys/fs/cgroup/cgroup.controllers ]] || cgroup=/sys/fs/cgroup/devices$(sed -n "s/^.*:devices://p" "/proc/$pid/cgroup")
		deep=$cgroup$(printf "/x%.0s" {1..12})
		mkdir -p "$deep" && echo "$pid" >"$deep/cgroup.procs" || fail "it cannot move"
		ctr-gpu detach one || fail detach
		echo "$pid" >"$cgroup/cgroup.procs" && find "$cgroup/x" -depth -type d -exec rmdir {} \;
		unchanged || fail "it is not as before"'
}

# Of Docker's containers, root may change its root directory, to a volume, too.
@test "a first process that has changed its root directory" {
	with_docker wsl-nvidia '
		mkdir -p /run/volume/etc && cp "$(command -v busybox)" /run/volume/
		start() { docker run --detach --name "$1" --network none --volume /run/volume:/volume debian sh -c "$2" >/dev/null && pid=$(docker inspect --format "{{.State.Pid}}" "$1"); }
		changed() { [[ /proc/$pid/root/busybox -ef /run/volume/busybox ]]; }
		export -f changed
		files() { find /run/volume; docker exec "$1" sh -c "ls /usr/lib/wsl /usr/bin/nvidia-smi; grep wsl /proc/self/mountinfo" 2>&1; }
		start two "exec busybox chroot /volume /busybox sleep 600" && export pid && soon changed || fail start
		files two >/run/before
		ctr-gpu attach two
		files two | diff /run/before - || fail "something was made"
		start three "trap \"exec busybox chroot /volume /busybox sleep 600\" USR1; : >/ready; sleep 600 & wait" && soon docker exec three ls /ready || fail start
		files three >/run/before
		ctr-gpu attach three || fail attach
		docker kill --signal USR1 three && soon changed || fail "it does not change"
		ctr-gpu detach three || fail detach
		files three | diff /run/before - || fail "something stays"
		docker rm --force two three'
	expect "[E_BAD_ROOTFS] two: process"
	expect "has left the root directory of its mount namespace (chroot)."
}

@test "a chroot in a mount namespace of its own" {
	run sandbox wsl-nvidia bash -c '
		mkdir -p /run/target/etc && cp "$(command -v busybox)" /run/target/
		unshare --mount chroot /run/target /busybox sleep 600 &
		pid=$!
		export pid
		moved() { [[ /proc/$pid/root/busybox -ef /run/target/busybox ]]; }
		export -f moved
		soon moved || exit
		ctr-gpu attach "$pid"
		kill -KILL "$pid"'
	expect "[E_BAD_ROOTFS] process"
	expect "has left the root directory of its mount namespace (chroot)."
	expect "ctr-gpu configure"
}

# A user needs no rights for a user namespace in which root is nobody, nor for a root directory there that is one of the host's.
@test "a process of a user namespace without root, in a directory of the host" {
	run sandbox wsl-nvidia bash -c '
		mkdir -p /run/target/{etc,dev,usr,proc,old} && cp "$(command -v busybox)" /run/target/
		for map in "" --map-user=7; do
			setpriv --reuid 54321 --regid 54321 --clear-groups unshare --user $map --keep-caps --mount --propagation private \
				"$(command -v busybox)" sh -c "mount --bind /run/target /run/target && cd /run/target && pivot_root . old &&
					exec /busybox chroot . /busybox sleep 600" &
			pid=$!
			export pid
			moved() { [[ /proc/$pid/root/busybox -ef /run/target/busybox ]]; }
			export -f moved
			soon moved || exit
			find /run/target -xdev | sort >/run/before
			ctr-gpu attach "$pid" && echo "it has a GPU"
			find /run/target -xdev | sort | diff /run/before - && echo "same$map"
			kill -KILL "$pid"
		done'
	expect "[E_NO_PERMISSION] process"
	expect "is in a user namespace that has no user of this one"
	expect_line same
	expect_line same--map-user=7
}

# bats test_tags=cgroup
@test "an ldconfig meanwhile, a second attach, and a native driver" {
	with_docker native-nvidia '
		docker cp /sbin/ldconfig one:/sbin/ldconfig && $in ldconfig && remember
		for _ in 1 2; do ctr-gpu attach one || fail attach; done
		$in ldconfig && $in probe | grep cuInit || fail "ldconfig lost it"
		ctr-gpu attach one --capabilities=all || fail "attach more"
		ctr-gpu detach one || fail detach
		$in grep -c ctr-gpu /etc/ld.so.cache
		$in ldconfig && unchanged || fail "it is not as before"'
	expect_line "cuInit=0"
	expect_line 0
}

@test "what cannot be: a name that none has, a process of this machine, a container that has nothing" {
	with_docker wsl-nvidia '
		ctr-gpu attach nothing; ctr-gpu attach oen; setpriv --reuid 1000 --regid 1000 --clear-groups env XDG_RUNTIME_DIR=/run ctr-gpu attach one
		setpriv --reuid 1000 --regid 1000 --clear-groups env --unset XDG_RUNTIME_DIR ctr-gpu attach one; ctr-gpu attach ../one; ctr-gpu attach 1; ctr-gpu attach 999999
		docker run --detach --name ro --network none debian sleep 600 >/dev/null && ctr-gpu detach ro; docker rm --force ro >/dev/null
		ctr-gpu detach one; ctr-gpu attach; ctr-gpu attach one two; ctr-gpu attach one --device 7
		ctr-gpu attach one --dry-run --json | jq -c ".adapters"
		unchanged || fail "it is not as before"'
	expect_line "ctr-gpu: [E_BAD_ARGUMENT] no container that runs is called nothing"
	expect_line "    These run: one"
	expect_line "    Or name it by its first process, which its engine shows (docker inspect, podman inspect)."
	expect "no container that runs is called oen; did you mean 'one'?"
	expect_line "    This user runs none."
	expect_line "ctr-gpu: XDG_RUNTIME_DIR is not set, where what is done is written down"
	expect_line "    Containers of root's Docker are looked at as root alone: try again with sudo."
	expect "\"../one\" is not the name of a container"
	expect "process 1 is in our own mount namespace"
	expect "[ESRCH] the container's process 999999 does not exist"
	expect "one: nothing was given to process"
	expect "ro: nothing was given to process"
	expect "CONTAINER is missing"
	expect "'two' is one argument too many"
	expect "[E_UNKNOWN_DEVICE]"
	expect '["0 NVIDIA GeForce RTX 4090"]'
}

@test "a container is named, and Docker does not run" {
	run sandbox wsl-nvidia ctr-gpu attach web
	expect_status 2
	expect_line "ctr-gpu: [E_BAD_ARGUMENT] no container that runs is called web"
	expect_line "    None runs."
	[[ ${lines[2]} == "    Docker does not run; start it, and the container: sudo "*(systemctl|service|rc-service|dockerd)* ]]
	run sandbox wsl-nvidia setpriv --reuid 1000 --regid 1000 --clear-groups ctr-gpu info --containers
	expect_line "No container that runs has a GPU, of those that this user may look at."
	expect_line "Containers of root's engines: sudo ctr-gpu info --containers"
}

# again TIMES: on a container that works meanwhile
again() {
	times=$1 with_docker wsl-nvidia '
		docker exec --detach one sh -c "while :; do ls -R /usr/lib /etc; cat /etc/ld.so.cache; done >/dev/null 2>&1"
		for ((i = 0; i < times; i++)); do
			ctr-gpu attach one && $in probe | grep -q cuInit=0 && ctr-gpu detach one || fail "round $i"
		done
		unchanged || fail "it is not as before"
		own_layer'
}

@test "again and again" {
	again 10
}

# bats test_tags=cgroup, nightly
@test "two hundred times" {
	again 200
}

# with_bundle RUNTIME SCRIPT: a container "three" of it that has no GPU
with_bundle() {
	rm -rf "$BATS_TEST_TMPDIR/bundle"
	bundle debian "$BATS_TEST_TMPDIR/bundle" 'del(.hooks) | .process.args = ["sleep", "600"] | .process.env = ["PATH=/usr/bin"]'
	run sandbox wsl-nvidia bash -c "$lib"'
		cd "$2" || exit
		jq --arg path "$CTR_GPU_TEST_CGROUP/three" ".linux.cgroupsPath = \$path" config.json >config.new && mv config.new config.json
		memlock "$1" run --detach three </dev/null >/dev/null 2>&1
		pid=$("$1" state three | jq .pid)
		in="$1 exec three"
		remember
		eval "$3"
		"$1" delete --force three
	' attach "$1" "$BATS_TEST_TMPDIR/bundle" "$2"
	expect_status 0
	expect_not "FAILED: "
}

of_a_runtime() {
	with_bundle "$1" '
		ctr-gpu attach three && $in probe || fail attach
		ctr-gpu detach three && unchanged || fail "it is not as before"'
	expect_gpu
}

# bats test_tags=cgroup
@test "runc and crun, by the name of the container" {
	both of_a_runtime
}

@test "containerd, by the id of its container" {
	require_program containerd
	run sandbox wsl-nvidia bash -c "$lib"'
		mkdir -p /run/containerd && cp -a "$2" /run/rootfs
		cat >/run/containerd/config.toml <<-END
			version = 2
			root = "$1"
			state = "/run/containerd"
			disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.internal.v1.opt"]
			[grpc]
			  address = "/run/containerd/containerd.sock"
		END
		containerd --config /run/containerd/config.toml >"$1/log" 2>&1 &
		soon ctr version || exit
		ctr run --detach --env PATH=/usr/sbin:/usr/bin --cpu-shares 0 --cgroup "$CTR_GPU_TEST_CGROUP/five" --rootfs /run/rootfs five sleep 600 || exit
		pid=$(ctr task ls | sed -n "s/^five *\([0-9]*\) .*/\1/p")
		in="ctr task exec --exec-id x five"
		remember
		ctr-gpu attach five && $in probe || fail attach
		ctr-gpu detach five && unchanged || fail "it is not as before"
		ctr task kill --signal KILL five
		soon eval "ctr task ls | grep -q \"^five .*STOPPED\"" || exit
		ctr task rm five >/dev/null
		# In a cgroup that has another name.
		ctr run --detach --env PATH=/usr/sbin:/usr/bin --cpu-shares 0 --cgroup "$CTR_GPU_TEST_CGROUP/other" --rootfs /run/rootfs six sleep 600 || exit
		ctr-gpu attach six || fail "attach six"
		ctr-gpu info --containers | grep -F "container six (containerd, six" || fail "six is not listed"
		ctr-gpu detach six || fail "detach six"
		ctr task kill --signal KILL six
	' attach "$(engine_directory containerd)" "$(image debian)"
	expect_status 0
	expect_not "FAILED: "
	expect_gpu
}

# Where a root file system is mounted with the identities of the container's user namespace (Podman's --rootfs DIRECTORY:idmap), this
# machine's root can remove files and make none.
# bats test_tags=cgroup
@test "an idmapped root file system in a user namespace" {
	bundle debian "$BATS_TEST_TMPDIR/bundle" 'del(.hooks) | .process.args = ["sleep", "600"] | .process.env = ["PATH=/usr/bin"]
		| .linux.namespaces += [{"type": "user"}]
		| .linux.uidMappings = [{"containerID": 0, "hostID": 100000, "size": 65536}] | .linux.gidMappings = .linux.uidMappings
		| .mounts |= map(select(.type != "sysfs" and .type != "mqueue" and .type != "cgroup"))'
	run sandbox wsl-nvidia bash -c "$lib"'
		mkdir -p /run/bundle/rootfs /run/image && cp "$1/config.json" /run/bundle && cp -a "$1/rootfs/." /run/image && cd /run/bundle
		idmap /run/image rootfs 100000 65536 || exit
		mount -t tmpfs tmpfs rootfs/tmp && chown 100000:100000 rootfs/tmp
		jq --arg path "$CTR_GPU_TEST_CGROUP/three" ".linux.cgroupsPath = \$path" config.json >config.new && mv config.new config.json
		memlock runc run --detach three </dev/null >/run/log 2>&1 || { cat /run/log; exit 1; }
		pid=$(runc state three | jq .pid)
		in="runc exec three"
		before() { $in busybox stat -c "%u %a" /etc/ld.so.cache; $in busybox md5sum /etc/ld.so.cache; $in ls /etc/ld.so.conf.d; }
		before >"$before"
		ctr-gpu attach three && $in probe || fail attach
		ctr-gpu detach three || fail detach
		before | diff "$before" - || fail "it is not as before"
		cp /sbin/ldconfig /run/image/sbin/
		ctr-gpu attach three && $in /sbin/ldconfig && ctr-gpu detach three || fail "with an ldconfig"
		echo "cache of $($in busybox stat -c %u /etc/ld.so.cache), with $($in /sbin/ldconfig -p | grep -c wsl) of ours"
		runc delete --force three
	' attach "$BATS_TEST_TMPDIR/bundle"
	[[ $status -ne 77 ]] || skip "this kernel has no idmapped mounts of this file system"
	expect_status 0
	expect_not "FAILED: "
	expect_line "cache of 0, with 0 of ours"
	expect_gpu
}

# A read-only root filesystem, in which nothing can be made.
@test "a container that is read-only has what the image has room for" {
	with_bundle runc '
		"$1" delete --force three
		jq ".root.readonly = true" config.json >config.new && mv config.new config.json
		memlock "$1" run --detach three </dev/null >/dev/null 2>&1
		pid=$("$1" state three | jq .pid)
		cut -d " " -f 3- "/proc/$pid/mountinfo" >"$before"
		ctr-gpu attach three
		cut -d " " -f 3- "/proc/$pid/mountinfo" | diff "$before" - || fail "it is not as before"
		find /run/ctr-gpu/attached -type f'
	expect "[E_ROOTFS_READ_ONLY]"
	expect_not "deeds.json"
}

of_podman() {
	run "$@" bash -c "$lib"'
		# Without root it has no cgroup.
		[[ -z $memlock ]] || options="--cgroup-parent $CTR_GPU_TEST_CGROUP"
		$memlock podman run --runtime crun --detach --name four $options debian sleep 600 >/dev/null || exit
		pid=$(podman inspect --format "{{.State.Pid}}" four)
		in="podman exec four"
		remember
		for name in four "$(podman inspect --format "{{.Id}}" four)"; do
			ctr-gpu attach "$name" && $in probe || fail attach
			ctr-gpu detach "$name" && unchanged || fail "it is not as before"
		done
		podman rm --force four >/dev/null 2>&1'
	expect_status 0
	expect_not "FAILED: "
	expect_gpu
}

# bats test_tags=cgroup
@test "podman, with root and without, by name and by id" {
	require_program podman
	require_program newuidmap
	podman_setup
	podman_remove_hooks
	directory=$(engine_directory podman)
	of_podman sandbox wsl-nvidia env memlock=memlock CONTAINERS_CONF="$directory/containers.conf" \
		CONTAINERS_STORAGE_CONF="$directory/storage.conf"
	of_podman rootless wsl-nvidia
}
