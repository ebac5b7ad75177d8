#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# bats file_tags=long
# shellcheck shell=bash disable=SC2016,SC2154
#
# ctr-gpu-device-plugin on simulated hosts, with a kubelet of the test's own (kubelet.py), which speaks gRPC by another library.

bats_require_minimum_version 1.5.0
load engines

plugin=$CTR_GPU_BUILD/bin/ctr-gpu-device-plugin

setup_file() {
	require_root
	[[ -x $plugin ]] || skip "ctr-gpu-device-plugin was not built: $("$e2e/../../pkg/needs" plugin) is missing"
	/usr/bin/python3 -c "import grpc" || skip "needs python3-grpcio"
}

# play PROFILE CASE [ARGUMENT…]: what a case of kubelet.py prints there; $prepare runs before
play() {
	local profile=$1
	shift
	sandbox "$profile" bash -ec 'rm -rf /etc/cdi /etc/ctr-gpu /run/cdi/* "$2" "$2.log"; eval "$prepare"; timeout 240 /usr/bin/python3 "$0" "$@" || { status=$?; cat "$2.log" >&2; exit "$status"; }' \
		"$e2e/kubelet.py" "$plugin" "$BATS_TEST_TMPDIR/$1" "$@"
}
export prepare=

# Stores that can be moved.
movable='mkdir "$2.stores"; cp -a /usr/lib/wsl/drivers/. "$2.stores"; umount /usr/lib/wsl/drivers; mount --bind "$2.stores" /usr/lib/wsl/drivers'

# A manager of vCUDA, and GPUs of three slots each.
slotted='mkdir -p /etc/ctr-gpu; echo "{\"vcuda\": {\"mode\": \"allow\", \"slots\": 3}}" >/etc/ctr-gpu/config.json
	"$CTR_GPU_BUILD/bin/ctr-gpu-vcudad" 2>/dev/null & until [[ -S /run/ctr-gpu/vcudad.sock ]]; do sleep 0.05; done'

one=GPU-5a3f1c2b-0001-0000-0000-0000a5c0e3d4 two=GPU-7b10aa04-0041-0000-0000-000084ef55fb

@test "kubelet learns of every vendor's GPUs and NPUs, each kind by its resource" {
	diff <(play wsl-two-nvidia list nvidia.com/gpu) - <<-END
		nvidia.com/gpu $one Healthy
		nvidia.com/gpu $two Healthy
		registered nvidia.com/gpu
	END
	diff <(play wsl-hybrid list nvidia.com/gpu intel.com/gpu) - <<-END
		nvidia.com/gpu $one Healthy
		intel.com/gpu LUID-00000000000123f0 Healthy
		registered intel.com/gpu nvidia.com/gpu
	END
	diff <(play native-intel list intel.com/gpu intel.com/npu) - <<-END
		intel.com/gpu 0000:00:02.0 Healthy
		intel.com/gpu 0000:03:00.0 Healthy
		intel.com/npu 0000:00:0b.0 Healthy
		registered intel.com/gpu intel.com/npu
	END
	diff <(play native-amd-partitions list amd.com/gpu) - <<-END
		amd.com/gpu 0 Healthy
		amd.com/gpu 1 Healthy
		amd.com/gpu 2 Healthy
		amd.com/gpu 3 Healthy
		amd.com/gpu GPU-a000000000000002 Healthy
		registered amd.com/gpu
	END
}

@test "a divided GPU is offered as its parts, or as a whole" {
	diff <(play native-mig list nvidia.com/gpu) - <<-END
		nvidia.com/gpu GPU-b703df58-2273-35fb-29be-3f6c49b83a95 Healthy
		nvidia.com/gpu MIG-00010000-2273-35fb-29be-3f6c49b83a96 Healthy
		nvidia.com/gpu MIG-00020000-2273-35fb-29be-3f6c49b83a96 Healthy
		nvidia.com/gpu MIG-00020001-2273-35fb-29be-3f6c49b83a96 Healthy
		nvidia.com/gpu MIG-00050000-2273-35fb-29be-3f6c49b83a96 Healthy
		registered nvidia.com/gpu
	END
	# Only a driver tells their names, and it is not asked all the time.
	[[ $(play native-mig stays nvidia.com/gpu | grep -c "nvidia.com/gpu .* Healthy") -eq 5 ]]
	diff <(play native-mig list nvidia.com/gpu --mig=whole) - <<-END
		nvidia.com/gpu GPU-b703df58-2273-35fb-29be-3f6c49b83a95 Healthy
		nvidia.com/gpu GPU-b703df58-2273-35fb-29be-3f6c49b83a96 Healthy
		registered nvidia.com/gpu
	END
}

@test "parts of a divided GPU are a resource by their size, and devices of nvidia.com/gpu all the same" {
	local part=MIG-00010000-2273-35fb-29be-3f6c49b83a96

	diff <(play native-mig list nvidia.com/gpu nvidia.com/mig-{3g.71gb,1c.3g.71gb,2c.3g.71gb,2g.35gb} --mig=profiles) - <<-END
		nvidia.com/gpu GPU-b703df58-2273-35fb-29be-3f6c49b83a95 Healthy
		nvidia.com/mig-3g.71gb $part Healthy
		nvidia.com/mig-1c.3g.71gb MIG-00020000-2273-35fb-29be-3f6c49b83a96 Healthy
		nvidia.com/mig-2c.3g.71gb MIG-00020001-2273-35fb-29be-3f6c49b83a96 Healthy
		nvidia.com/mig-2g.35gb MIG-00050000-2273-35fb-29be-3f6c49b83a96 Healthy
		registered nvidia.com/gpu nvidia.com/mig-1c.3g.71gb nvidia.com/mig-2c.3g.71gb nvidia.com/mig-2g.35gb nvidia.com/mig-3g.71gb
	END
	diff <(play native-mig allocate nvidia.com/mig-3g.71gb cdi,annotations,mounts,environment 0 --mig=profiles) - <<-END
		0 env NVIDIA_VISIBLE_DEVICES=$part
		0 mount /dev/null /var/run/nvidia-container-devices/cdi/nvidia.com/gpu/$part ro
		0 annotation cdi.k8s.io/ctr-gpu-nvidia.com_mig-3g.71gb=nvidia.com/gpu=$part
		0 cdi nvidia.com/gpu=$part
	END
	[[ $(play native-mig stays nvidia.com/mig-2g.35gb --mig=profiles) == "nvidia.com/mig-2g.35gb MIG-00050000-2273-35fb-29be-3f6c49b83a96 Healthy" ]]
}

@test "a GPU with slots is offered as these and as nothing else, and a container has one" {
	export prepare=$slotted
	diff <(play wsl-two-nvidia list ctr-gpu.org/vgpu) - <<-END
		ctr-gpu.org/vgpu $one:0 Healthy
		ctr-gpu.org/vgpu $one:1 Healthy
		ctr-gpu.org/vgpu $one:2 Healthy
		ctr-gpu.org/vgpu $two:0 Healthy
		ctr-gpu.org/vgpu $two:1 Healthy
		ctr-gpu.org/vgpu $two:2 Healthy
		registered ctr-gpu.org/vgpu
	END
	# Other vendors' GPUs, and GPUs that are divided, have none.
	play wsl-hybrid list ctr-gpu.org/vgpu intel.com/gpu | grep -x "registered ctr-gpu.org/vgpu intel.com/gpu"
	[[ $(play native-mig list ctr-gpu.org/vgpu nvidia.com/gpu | sed "s/-.*//" | sort | uniq -c | tr -s "\n " " ") == \
		" 3 ctr 4 nvidia.com/gpu MIG 1 registered ctr " ]]
	diff <(play wsl-two-nvidia allocate ctr-gpu.org/vgpu cdi,annotations,mounts,environment 4) - <<-END
		0 env CTR_GPU_VISIBLE_DEVICES=ctr-gpu.org/vgpu=$two:1
		0 mount /dev/null /var/run/nvidia-container-devices/cdi/ctr-gpu.org/vgpu/$two:1 ro
		0 annotation cdi.k8s.io/ctr-gpu-ctr-gpu.org_vgpu=ctr-gpu.org/vgpu=$two:1
		0 cdi ctr-gpu.org/vgpu=$two:1
	END
	play native-four slots ctr-gpu.org/vgpu nvidia.com/gpu
	# They are as healthy as their GPUs while the manager hangs.
	[[ $(prepare="$slotted; kill -STOP \$!" play wsl-two-nvidia stays ctr-gpu.org/vgpu | grep -c ":[0-2] Healthy") -eq 6 ]]
	# Those of a GPU that is lost are not, and without a manager none is.
	prepare='mkdir -p /etc/ctr-gpu; echo "{\"vcuda\": {\"mode\": \"allow\", \"slots\": 1}}" >/etc/ctr-gpu/config.json' play wsl-two-nvidia slots-lost ctr-gpu.org/vgpu
	# CDI, hook and shim know them by these names.
	sandbox wsl-two-nvidia bash -ec "$slotted"'
		ctr-gpu cdi generate >/dev/null
		[[ $(jq -r ".kind + \" \" + ([.devices[].name] | join(\" \"))" /etc/cdi/ctr-gpu-vgpu.json) == "ctr-gpu.org/vgpu $0:0 $0:1 $0:2 $1:0 $1:1 $1:2" ]]
		ctr-gpu list --dry-run --device "ctr-gpu.org/vgpu=$1:2" --json | jq -e "(.vcuda | length) == 1 and .vcuda[0].uuid == \"$1\"" >/dev/null
		! ctr-gpu list --dry-run --device "ctr-gpu.org/vgpu=$1:3" 2>/run/said || exit 1
		grep -q "E_UNKNOWN_DEVICE.*no such slot" /run/said' "$one" "$two"
}

@test "what is offered is what CDI, hook and shim know by that name" {
	local profile

	for profile in wsl-two-nvidia wsl-hybrid native-mig native-intel native-amd-partitions; do
		sandbox "$profile" bash -ec '
			mkdir -p "$1"; ctr-gpu cdi generate --output="$1/cdi/" >/dev/null
			jq -r ".kind as \$kind | .devices[] | \$kind + \"=\" + .name" "$1"/cdi/* >"$1/names"
			for kind in $(jq -r .kind "$1"/cdi/*); do
				/usr/bin/python3 "$0" "$2" "$1/plugins" list "$kind" | grep -v ^registered
			done | sort -u | while read -r kind device _; do
				grep -qxF "$kind=$device" "$1/names" || { echo "no CDI device is called $kind=$device" >&2; exit 1; }
				ctr-gpu list --device "$kind=$device" >/dev/null
				echo one
			done >"$1/seen"; test -s "$1/seen"' "$e2e/kubelet.py" "$BATS_TEST_TMPDIR/$profile" "$plugin"
	done
}

@test "a container is told its devices by each strategy" {
	diff <(play wsl-two-nvidia allocate nvidia.com/gpu cdi,annotations,mounts,environment 1 01) - <<-END
		0 env NVIDIA_VISIBLE_DEVICES=$two
		0 mount /dev/null /var/run/nvidia-container-devices/cdi/nvidia.com/gpu/$two ro
		0 annotation cdi.k8s.io/ctr-gpu-nvidia.com_gpu=nvidia.com/gpu=$two
		0 cdi nvidia.com/gpu=$two
		1 env NVIDIA_VISIBLE_DEVICES=$one,$two
		1 mount /dev/null /var/run/nvidia-container-devices/cdi/nvidia.com/gpu/$one ro
		1 mount /dev/null /var/run/nvidia-container-devices/cdi/nvidia.com/gpu/$two ro
		1 annotation cdi.k8s.io/ctr-gpu-nvidia.com_gpu=nvidia.com/gpu=$one,nvidia.com/gpu=$two
		1 cdi nvidia.com/gpu=$one
		1 cdi nvidia.com/gpu=$two
	END
	diff <(play wsl-hybrid allocate intel.com/gpu environment 0) - <<-END
		0 env CTR_GPU_VISIBLE_DEVICES=LUID-00000000000123f0
	END
}

@test "unless it is said, the engine decides on the strategy" {
	diff <(play wsl-two-nvidia allocate nvidia.com/gpu default 0) - <<-END
		0 mount /dev/null /var/run/nvidia-container-devices/cdi/nvidia.com/gpu/$one ro
	END
	# One that reads CDI's specs, and a spec.
	export prepare='ctr-gpu cdi generate >/dev/null; mkdir -p /etc/containerd; printf "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\"]\nenable_cdi = true\n" >/etc/containerd/config.toml'
	if [[ $(containerd --version) =~ [\ v](1\.[7-9]|[2-9]) ]]; then
		diff <(play wsl-two-nvidia allocate nvidia.com/gpu default 0) - <<-END
			0 annotation cdi.k8s.io/ctr-gpu-nvidia.com_gpu=nvidia.com/gpu=$one
			0 cdi nvidia.com/gpu=$one
		END
	else
		# An older one has no CDI, whatever its file says.
		diff <(play wsl-two-nvidia allocate nvidia.com/gpu default 0) - <<-END
			0 mount /dev/null /var/run/nvidia-container-devices/cdi/nvidia.com/gpu/$one ro
		END
	fi
}

@test "the first spec of a node whose engine has CDI counts from then on, until it is gone" {
	export prepare='mkdir -p /etc/containerd; printf "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\"]\nenable_cdi = true\n" >/etc/containerd/config.toml
		awk "/^Package: / { name = \$2 } /^Version: / && name == \"containerd\" { \$0 = \"Version: 1.7.24~ds1-6\" } { print }" /var/lib/dpkg/status >/run/status; mount --bind /run/status /var/lib/dpkg/status'
	play wsl-two-nvidia follows nvidia.com/gpu
}

@test "devices of one NUMA node are preferred" {
	export prepare='for i in 6 8; do echo 1 >"/sys/bus/pci/devices/0000:00:0$i.0/numa_node"; done'
	[[ $(play native-four nodes nvidia.com/gpu 0123//2=02 13//2=13 123//2=13 0123/3/2=31 0123/3/3=310 0123//1=0 023//2=02) == "nodes 1 0 1 0" ]]
	export prepare=
	play wsl-two-nvidia prefer nvidia.com/gpu
}

@test "a GPU whose driver store vanishes is not healthy until it is back" {
	export prepare=$movable
	play wsl-two-nvidia health nvidia.com/gpu "$(store wsl-two-nvidia 1)"
}

# The simulated driver has no module, whose directory is another when it is loaded again.
loaded='mount -t tmpfs none /sys/module; mkdir /sys/module/nvidia; rm -f /run/nvidia-xid /run/nvidia-action'

@test "a GPU whose driver reports an error (Xid) is not healthy until the driver is loaded again, a part for its own alone" {
	export prepare=$loaded
	play native-mig xid-parts nvidia.com/gpu 2>"$BATS_TEST_TMPDIR/parts" & parts=$!
	play native-four xid nvidia.com/gpu
	wait "$parts" || { cat "$BATS_TEST_TMPDIR/parts"; return 1; }
}

# bats test_tags=nightly
@test "what is a program's own fault makes no GPU unhealthy, and the driver's word on an error counts" {
	export prepare=$loaded
	play native-four xid-words nvidia.com/gpu
}

@test "kubelet and the plugin are started anew, and all devices are there" {
	play wsl-two-nvidia restarts nvidia.com/gpu
}

@test "a second plugin waits for the end of the first, and a directory that cannot be written to is complained of once" {
	play wsl-two-nvidia two nvidia.com/gpu
	play wsl-hybrid unwritable nvidia.com/gpu intel.com/gpu
}

@test "the plugin ends where it cannot write to a directory that was made after its start, so that it is started again" {
	sandbox wsl-two-nvidia bash -ec 'mkdir "$1"; mount --bind "$1" "$1"; mount -o remount,bind,ro "$1"
		timeout 60 "$0" --kubelet-directory="$1" 2>"$1.log" || echo "status $?"; cat "$1.log"' "$plugin" "$BATS_TEST_TMPDIR/plugins" >"$BATS_TEST_TMPDIR/said"
	grep -x "status 1" "$BATS_TEST_TMPDIR/said"
	grep "ctr-gpu-nvidia.com_gpu.sock: Read-only file system" "$BATS_TEST_TMPDIR/said"
}

# These wait for the plugin's patience, so they wait together.
@test "a kubelet that refuses, hangs or watches no more is asked again, and neither a peer nor a look is waited for without end" {
	local case pids=() pid failed=0

	for case in refuses hangs watch-lost slow no-look; do
		play wsl-two-nvidia "$case" nvidia.com/gpu 2>"$BATS_TEST_TMPDIR/$case.said" &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do
		wait "$pid" || failed=1
	done
	[[ $failed == 0 ]] || { cat "$BATS_TEST_TMPDIR"/*.said; return 1; }
}

@test "calls that cannot be answered have gRPC's codes" {
	diff <(play wsl-two-nvidia codes nvidia.com/gpu) - <<-END
		unknown INVALID_ARGUMENT
		one of two INVALID_ARGUMENT
		of another container INVALID_ARGUMENT
		no method UNIMPLEMENTED
		no protobuf INTERNAL
		too long RESOURCE_EXHAUSTED
		many containers RESOURCE_EXHAUSTED
		none OK OK
		start OK
	END
}

@test "a peer that speaks broken HTTP/2, or nothing, keeps no other from its answers" {
	play wsl-two-nvidia hostile nvidia.com/gpu
}

@test "thousands of calls leave nothing behind" {
	play wsl-two-nvidia many nvidia.com/gpu
}

@test "what reads a peer's bytes can open no file and run no program, and has no rights" {
	! grep -q __asan_init "$plugin" || skip "sanitizers make calls of their own"
	sandbox wsl-two-nvidia bash -ec 'mkdir "$1"; "$0" --kubelet-directory="$1" 2>"$1.log" & plugin=$!
		for i in {1..300}; do grep -q "can be used" "$1.log" && break; sleep 0.1; done
		grep -E "^(Seccomp|CapEff|CapPrm|NoNewPrivs):" "/proc/$plugin/status"; kill "$plugin"; wait "$plugin"' \
		"$plugin" "$BATS_TEST_TMPDIR/plugins" | tr '\t' ' ' | sort | diff - <(printf '%s\n' "CapEff: 0000000000000000" "CapPrm: 0000000000000000" "NoNewPrivs: 1" "Seccomp: 2")
}

@test "a host without a GPU has nothing to offer, and the plugin waits" {
	sandbox plain bash -ec 'mkdir "$1"; "$0" --kubelet-directory="$1" 2>"$1.log" & plugin=$!
		for i in {1..300}; do grep -q "E_NO_DEVICE\|no GPU" "$1.log" && break; sleep 0.1; done
		cat "$1.log"; ls -A "$1"; kill -0 "$plugin"; kill "$plugin"; wait "$plugin"' "$plugin" "$BATS_TEST_TMPDIR/plugins" >"$BATS_TEST_TMPDIR/said"
	grep -q "no GPU" "$BATS_TEST_TMPDIR/said"
	! grep -q "\.sock" "$BATS_TEST_TMPDIR/said" || false
}

@test "wrong options are named" {
	run -2 "$plugin" --strategy=cdi,magic
	[[ ${lines[0]} == *"--strategy=cdi,magic: it takes cdi, annotations, mounts and environment, separated by commas" ]]
	[[ ${lines[1]} == "    See ctr-gpu-device-plugin(8)." ]]
	run -2 "$plugin" --mig=half
	run -2 "$plugin" --kubelet-directory=here
	run -2 "$plugin" --nothing
	run -2 "$plugin" now
	[[ $output == *"it takes no argument: now"* ]]
	run -0 "$plugin" --version
	[[ $output == "ctr-gpu-device-plugin "[0-9]* ]]
	run -0 "$plugin" --help
	[[ $output == *--strategy=* ]]
}

@test "labels say what a node has" {
	labels() {
		sandbox "$1" bash -ec 'rm -rf /etc/ctr-gpu; "$0" --labels' "$plugin"
	}
	diff <(labels wsl-two-nvidia) - <<-END
		nvidia.com/gpu.has.NVIDIA-GeForce-RTX-4090=true
		nvidia.com/gpu.has.NVIDIA-RTX-A2000=true
		nvidia.com/gpu.count=2
		nvidia.com/gpu.product=mixed
		nvidia.com/gpu.backend=gpu-pv
		nvidia.com/gpu.cuda=12.8
		ctr-gpu.org/gpu.choice=environment
	END
	diff <(labels native-mig) - <<-END
		nvidia.com/gpu.has.NVIDIA-H200=true
		nvidia.com/gpu.count=2
		nvidia.com/gpu.product=NVIDIA-H200
		nvidia.com/gpu.backend=native
		nvidia.com/gpu.driver=580.159.04
		nvidia.com/gpu.cuda=13.0
		nvidia.com/gpu.architecture=9.0
	END
	labels wsl-hybrid | grep -x "intel.com/gpu.product=Intel-R-Iris-R-Xe-Graphics"
	labels native-intel | grep -x "intel.com/npu.count=1"
	run --separate-stderr labels plain
	[[ $status -ne 0 && -z $output && $stderr == *"no GPU here"* ]]
	# Each is a label that Kubernetes takes.
	for profile in wsl-two-nvidia wsl-hybrid wsl-amd-npu native-mig native-intel native-amd-partitions; do
		labels "$profile" | grep -vE '^[a-z.-]+/[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?=[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$' && return 1
	done
	true
}

@test "the image has a plugin that needs nothing else, is the same each time, and every part is what its digest says" {
	! grep -q __asan_init "$plugin" || skip "a sanitizer cannot be linked statically"
	local layout=$CTR_GPU_BUILD/kubernetes-image root=$BATS_TEST_TMPDIR/root first blob

	for i in 1 2; do
		env -u MAKEFLAGS -u MAKELEVEL make -C "$e2e/../.." O="$CTR_GPU_BUILD" kubernetes-image >"$BATS_TEST_TMPDIR/log" 2>&1 || { cat "$BATS_TEST_TMPDIR/log"; return 1; }
		[[ $i == 1 ]] || [[ $first == "$(sha256sum "$layout.tar")" ]]
		first=$(sha256sum "$layout.tar")
	done
	for blob in "$layout"/blobs/sha256/*; do
		[[ $(sha256sum "$blob" | cut -d " " -f 1) == "${blob##*/}" ]]
	done
	blob() { echo "$layout/blobs/sha256/$(jq -r "$2" "$1" | sed "s/^sha256://")"; }
	manifest=$(blob "$layout/index.json" ".manifests[0].digest")
	[[ $(jq -r ".layers | length" "$manifest") == 1 ]]
	[[ $(zcat "$(blob "$manifest" ".layers[0].digest")" | sha256sum | cut -d " " -f 1) == $(jq -r ".rootfs.diff_ids[0]" "$(blob "$manifest" .config.digest)" | sed s/sha256://) ]]
	mkdir "$root"
	tar -xzf "$(blob "$manifest" ".layers[0].digest")" -C "$root"
	[[ $(cd "$root" && find . -type f | sort) == $'./ctr-gpu/LICENSE\n./ctr-gpu/ctr-gpu-device-plugin\n./ctr-gpu/ctr-gpu-driverd' ]]
	run -0 chroot "$root" "$(jq -r ".config.Entrypoint[0]" "$(blob "$manifest" .config.digest)")" --version
	[[ $output == "ctr-gpu-device-plugin "[0-9]* ]]
	grep -qF "image: ctr-gpu-device-plugin:$(jq -r '.manifests[0].annotations["org.opencontainers.image.ref.name"]' "$layout/index.json")" "$e2e/../../examples/kubernetes/daemon-set.yaml"
}

@test "metrics say what is in use of slots, of which each is one container's" {
	sandbox wsl-two-nvidia bash -ec "$slotted"'
		"$0" --kubelet-directory=/run/plugins --metrics=/run/metrics 2>/run/log & plugin=$!
		page() { curl --silent --max-time 8 --unix-socket /run/metrics http://localhost/metrics | grep -v "^#"; }
		soon() { for ((i = 0; i < 600; i++)); do ! page | grep -q "$@" || return 0; sleep 0.1; done; page; cat /run/log; return 1; }
		mkfifo /run/held; exec 3<>/run/held
		for name in one two; do
			"$2" root=1 id=$name pid=$$ gpu="$1" address=0000:01:00.0 name=One library=/run/driver/libcuda.so.1 memory=$((33 << 56)) \
				clients=4 share=70 slot=2 <&3 >/run/answer.$name & asks+=($!)
			until [[ -s /run/answer.$name ]]; do sleep 0.1; done
		done
		soon ctr_gpu_slot_share; page | grep ctr_gpu_slot
		grep -ac "has that slot of the GPU" /run/answer.one /run/answer.two || true
		kill "${asks[@]}"; wait "${asks[@]}" || true
		for ((i = 0; i < 600; i++)); do page | grep -q ctr_gpu_slot_share || break; sleep 0.1; done
		((i < 600)); kill $plugin; wait $plugin' "$plugin" "$one" "$CTR_GPU_BUILD/vcuda/test/ask" >"$BATS_TEST_TMPDIR/said"
	diff "$BATS_TEST_TMPDIR/said" - <<-END
		ctr_gpu_slot_memory_used_bytes{device="$one:1",id="one"} 0
		ctr_gpu_slot_memory_limit_ratio{device="$one:1",id="one"} 0.33000000000000002
		ctr_gpu_slot_share{device="$one:1",id="one"} 70
		ctr_gpu_slot_processes{device="$one:1",id="one"} 0
		/run/answer.one:0
		/run/answer.two:1
	END
}

@test "metrics are served where they are wanted, to peers that ask for them" {
	sandbox wsl-two-nvidia bash -ec 'mkdir -p /run/plugins; rm -rf /etc/ctr-gpu
		"$0" --kubelet-directory=/run/plugins --metrics=/run/metrics 2>/run/log & plugin=$!
		page() { curl --silent --max-time 8 --unix-socket /run/metrics "http://localhost$1"; }
		for ((i = 0; i < 600; i++)); do [[ $(page /metrics) != *device_healthy{* ]] || break; sleep 0.1; done
		page /metrics | grep -v "^#"; page / | grep -c "^# TYPE"; page /other
		[[ $(stat -c %a /run/metrics) == 600 ]]
		# Peers that say nothing, too much or end early keep others out for a while only.
		/usr/bin/python3 - <<-END &
			import socket, time
			peers = []
			for data in [b"", b"GET /metrics", b"x" * 5000, b"\\0" * 100, b"POST /metrics HTTP/1.1\\r\\n\\r\\n", b"GET /metrics HTTP/1.1\\r\\n\\r\\n"] * 5:
			    peer = socket.socket(socket.AF_UNIX)
			    peer.connect("/run/metrics")
			    try:
			        peer.send(data)
			    except OSError:
			        pass
			    if data == b"":
			        peers.append(peer)
			open("/run/sent", "w")
			time.sleep(600)
			END
		crowd=$!; until [[ -e /run/sent ]]; do sleep 0.05; done
		for ((i = 0; i < 600; i++)); do [[ $(page /metrics) != *device_healthy{* ]] || break; sleep 0.1; done
		((i < 600)); kill $plugin $crowd; wait $plugin' "$plugin" >"$BATS_TEST_TMPDIR/said"
	diff "$BATS_TEST_TMPDIR/said" - <<-END
		ctr_gpu_device_healthy{resource="nvidia.com/gpu",device="$one"} 1
		ctr_gpu_device_healthy{resource="nvidia.com/gpu",device="$two"} 1
		ctr_gpu_kubelet_answers 0
		3
		The page is /metrics.
	END
	sandbox plain unshare --net bash -ec 'ip link set lo up; "$0" --kubelet-directory=/run/plugins --metrics=127.0.0.1:19445 2>/run/log & plugin=$!
		for ((i = 0; i < 600; i++)); do ! curl --silent http://127.0.0.1:19445/metrics | grep -qx "ctr_gpu_kubelet_answers 0" || break; sleep 0.1; done
		((i < 600)); kill $plugin; wait $plugin' "$plugin"
	# A file of somebody's that was named by mistake stays.
	echo kept >"$BATS_TEST_TMPDIR/file"
	run sandbox plain timeout 30 "$plugin" --kubelet-directory=/run/plugins --metrics="$BATS_TEST_TMPDIR/file"
	[[ $status == 1 && $(cat "$BATS_TEST_TMPDIR/file") == kept ]] || { echo "$output"; return 1; }
	for where in 0.0.0.0:80 127.0.0.1:0 127.0.0.1:99999 localhost:80 relative; do
		run sandbox plain timeout 30 "$plugin" --kubelet-directory=/run/plugins --metrics="$where"
		[[ $status == 1 || $status == 2 ]] || { echo "$where: $output"; return 1; }
	done
}
