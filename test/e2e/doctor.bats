# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2016,SC2154
#
# ctr-gpu doctor on hosts that have what users complain about: each fault is found, under its name, with what to do.

load engines

# Functions for the host: what a healthy one has besides its GPU, and faults.
host_functions='
hook=$CTR_GPU_BUILD/bin/ctr-gpu-hook
hooks_d=/usr/share/containers/oci/hooks.d
wire() { ln -s "$hook" /usr/bin/nvidia-container-runtime-hook; }
hooks_d_file() { mkdir -p "$hooks_d"; echo "{\"version\": \"1.0.0\", \"hook\": {\"path\": \"$2\"}, \"when\": {\"always\": true}, \"stages\": [\"prestart\"]}" >"$hooks_d/$1"; }
nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
store() { echo /usr/lib/wsl/drivers/nv_dispi*; }
# copied DIRECTORY: the same files where they may be changed, as WSL shares them read-only
copied() { mkdir /run/copy; cp -a "$1/." /run/copy; mount --bind /run/copy "$1"; }
spec() { mkdir -p /etc/cdi /run/cdi; cat >"$1"; }
# This machine is the inside of a container, and has settings of its own perhaps.
rm -rf /etc/ctr-gpu "$hooks_d" /etc/cdi
unset CONTAINERS_CONF SUDO_UID
'

# on PROFILE SCRIPT: run it on a host of that kind; `doctor` in it prints "severity id" for each finding
on() {
	local profile=$1
	shift
	sandbox "$profile" bash -c "$host_functions"'
		# Lines as they were before they were made to fit a screen.
		doctor() { ctr-gpu --timeout 2 doctor "$@" >/run/screen; local status=$?; sed -z "s/\\n                    \\([^>]\\)/ \\1/g" /run/screen; return $status; }
		ids() { ctr-gpu --timeout 2 doctor --json "$@" | jq -r ".findings[] | .severity + \" \" + .id"; }
		first() { ctr-gpu --timeout 2 doctor --json "$@" | jq -r ".first"; }
		remedy() { ctr-gpu --timeout 2 doctor --json | jq -r --arg id "$1" ".findings[] | select(.id == \$id) | .remedy"; }
		'"$1"
}

setup_file() {
	require_root
}

# ---- a machine on which all is well ----

@test "a healthy WSL2 host: status 0, one screen" {
	run on wsl-hybrid 'wire; ctr-gpu doctor'
	expect_status 0
	expect_line "A GPU container would work here."
	expect "GPU 0 NVIDIA GeForce RTX 4070 Laptop GPU (nv_dispi.inf_amd64_4ac8a5f5c1b3b3ab)"
	expect "GPU 1 Intel(R) Iris(R) Xe Graphics"
	expect "CUDA 12.8"
	expect "--gpus (ctr-gpu's hook)"
	expect_not "problem "
	expect_not "warning "
	[[ ${#lines[@]} -le 24 ]]
	for line in "${lines[@]}"; do [[ ${#line} -le 100 ]]; done
}

@test "a healthy native host, and one with GPUs of both kinds" {
	run on native-four 'wire; doctor'
	expect_status 0
	expect "NVIDIA driver 580.159.04, CUDA 13.0"
	expect "GPU 3 NVIDIA H200 at 0000:00:09.0"
	[[ ${#lines[@]} -le 24 ]]
	run on native-and-dxg 'wire; ids; doctor >/dev/null; echo "status $?"'
	expect_line "ok host.both"
	expect_line "status 0"
}

@test "--json has the findings of the screen, and which is the first" {
	run on wsl-nvidia 'wire; doctor --json | jq -r "[.works, .first, (.findings | length > 8), (.findings | all(.id and .severity and .text and has(\"remedy\")))] | @csv"'
	expect_line 'true,,true,true'
	run on wsl-no-adapter 'wire; doctor --json | jq -r "[.works, .first] | @csv"'
	expect_line 'false,"adapter.none"'
}

@test "nothing is changed, and no privilege needed" {
	run on wsl-hybrid '
		wire
		find /etc /usr/lib/wsl /run /var/lib/ctr-gpu /dev -newermt @$(($(date +%s) + 1)) 2>/dev/null
		sleep 1.1
		touch /tmp/before.$$
		nobody ctr-gpu doctor >/run/output; echo "status $?"
		ctr-gpu doctor >/run/output2
		find /etc /usr/lib/wsl /dev /root /var/lib -newer /tmp/before.$$ 2>/dev/null | grep -v "^/dev/null\|^/dev/pts\|^/dev/tty"
		rm /tmp/before.$$; cat /run/output'
	expect_line "status 0"
	[[ $output != *$'\n/etc'* && $output != *$'\n/usr/lib/wsl'* && $output != *$'\n/dev/'* ]]
	expect "A GPU container would work here."
}

@test "nothing is executed but ctr-gpu-driverd" {
	run on wsl-hybrid 'wire; strace -f -qq -e trace=execve,execveat -o /run/trace ctr-gpu doctor >/dev/null; grep -o "execve[a-z]*(\"[^\"]*" /run/trace | sort -u'
	expect ctr-gpu-driverd
	[[ $(grep -c execve <<<"$output") -eq 2 ]]
}

# ---- no adapter, for every one of the reasons ----

@test "an empty list of adapters, an old driver, a software device: each says which" {
	run on wsl-no-adapter 'ids; remedy adapter.none'
	expect_line "problem adapter.none"
	expect "TCC"
	run on wsl-old-driver 'first; doctor'
	expect_line adapter.unusable
	expect "[E_DRIVER_TOO_OLD]: its driver is WDDM 2.6, and 2.7 is needed"
	expect "First: Update the driver in Windows"
	run on wsl-software-only 'doctor'
	expect_status 1
	expect "it is a software device"
	run on wsl-amd-npu 'wire; ids; doctor >/dev/null && echo works'
	expect_line "note adapter.no-nvidia"
	expect_line works
}

@test "no device: WSL with the GPU turned off, without it, and WSL1" {
	run on plain 'first; doctor'
	expect_line host.no-gpu
	expect_status 1
	# A kernel that calls itself WSL's; uname(2) is answered by the UTS namespace's own.
	run on wsl-nvidia 'umount /dev/dxg 2>/dev/null; rm -f /dev/dxg; printf "[gpu]\nenabled = false\n" >/etc/wsl.conf; first; remedy host.no-device'
	expect_line host.no-device
	expect "set enabled=true under [gpu]"
	run on wsl-nvidia 'rm -f /dev/dxg; remedy host.no-device'
	expect "wsl --update"
}

@test "an NVIDIA GPU without its module, and with nouveau" {
	run on native-nvidia '
		rm -rf /dev/nvidia*; mkdir /run/none; mount --bind /run/none /proc/driver
		first; remedy host.no-driver
		cp -a /sys/bus/pci/devices /run/pci; mkdir -p /run/nouveau; for device in /run/pci/*06.0; do ln -sfn ../nouveau "$device/driver"; done; mount --bind /run/pci /sys/bus/pci/devices
		remedy host.no-driver'
	expect_line host.no-driver
	expect "sudo ctr-gpu load"
	expect "takes nouveau's place"
}

@test "the inside of a container, which WSL is none of" {
	run on native-nvidia 'mkdir -p /run/systemd; echo lxc >/run/systemd/container; doctor'
	expect "inside of a container (lxc)"
	run on wsl-nvidia 'mkdir -p /run/systemd; echo wsl >/run/systemd/container; doctor'
	expect_not "(wsl)"
	expect "WSL2, GPUs behind /dev/dxg"
}

@test "a Hyper-V guest whose dxgkrnl is not loaded" {
	run on plain '
		mkdir -p /run/pci/0000:00:00.0; cd /run/pci/0000:00:00.0; echo 0x1414 >vendor; echo 0x008e >device; echo 0x030200 >class
		mount --bind /run/pci /sys/bus/pci/devices; first; remedy host.no-device'
	expect_line host.no-device
	expect "modprobe dxgkrnl"
}

# ---- driver stores ----

@test "a store that is not on disk, one of two, and a libdxcore that was never copied" {
	run on hyperv-stale-store 'doctor'
	expect_status 1
	expect "[E_NO_DRIVER_STORE]"
	run on hyperv-half-stale 'wire; ids'
	expect_line "warning adapter.unusable"
	expect_line "ok store.complete"
	run on hyperv-no-libdxcore 'first; doctor --json | jq -r ".findings[] | select(.id == \"store.incomplete\") | .text, .remedy"'
	expect_line store.incomplete
	expect_line "/usr/lib/wsl/lib has no libdxcore.so"
	expect "libd3d12core.so"
}

@test "files that are empty since a Windows driver update, and files that are missing" {
	run on wsl-nvidia 'copied /usr/lib/wsl/lib; : >/usr/lib/wsl/lib/nvidia-smi; : >/usr/lib/wsl/lib/libcuda.so.1; first; doctor'
	expect_line store.stale
	expect "is empty"
	expect "(2 of "
	expect "wsl --shutdown"
	run on wsl-nvidia 'copied "$(store)"; rm "$(store)/libcuda.so.1.1"; first; doctor'
	expect_line store.incomplete
	expect "has no libcuda.so.1.1"
	run on wsl-nvidia 'copied "$(store)"; rm "$(store)"/*; echo "rest $(ls "$(store)" | wc -l)"; first'
	expect_line store.incomplete
}

# ---- drivers ----

@test "NVIDIA's driver for Linux installed inside WSL" {
	run on wsl-nvidia 'wire; libdir=/usr/lib/$(gcc -print-multiarch); cp "$(store)/libcuda.so.1.1" "$libdir/libcuda.so.535.183.01"; ln -s libcuda.so.535.183.01 "$libdir/libcuda.so.1"; doctor'
	expect_status 0
	expect "warning  driver     NVIDIA's driver for Linux is installed here"
	expect "apt purge"
	# The package that it came with is named.
	run on wsl-nvidia 'libdir=/usr/lib/$(gcc -print-multiarch); cp "$(store)/libcuda.so.1.1" "$libdir/libcuda.so.535.183.01"; ln -s libcuda.so.535.183.01 "$libdir/libcuda.so.1"
		mkdir -p /run/info; printf "/.\n%s\n" "$libdir/libcuda.so.535.183.01" >/run/info/libnvidia-compute-535:amd64.list; mount --bind /run/info /var/lib/dpkg/info; remedy driver.linux-in-wsl'
	expect "sudo apt purge libnvidia-compute-535;"
	run on wsl-nvidia 'ids'
	expect_no_line "warning driver.linux-in-wsl"
}

@test "a driver updated halfway, one in a root of its own, a module that is not loaded" {
	run on native-halfway 'first; doctor'
	expect_line driver.files
	expect "kernel module 570.86.10, libraries 580.159.04"
	run on native-root 'first; ctr-gpu doctor --root=/usr/local/driver --json | jq -r .first'
	expect_line driver.files
	expect_no_line "null driver.files"
	expect_line engines.none
	run on native-no-uvm 'first; remedy device.missing'
	expect_line device.missing
	expect "sudo ctr-gpu load"
}

@test "an NVML of another version than the module" {
	run on native-nvidia 'wire; libdir=/usr/lib/$(gcc -print-multiarch); mv "$libdir/libnvidia-ml.so.580.159.04" "$libdir/libnvidia-ml.so.570.86.10"; ln -sf libnvidia-ml.so.570.86.10 "$libdir/libnvidia-ml.so.1"; doctor'
	expect "warning  driver"
	expect "libnvidia-ml.so.570.86.10 is not of the kernel module's version 580.159.04"
}

@test "nodes that a user may not open, and something else in a node's place" {
	run on wsl-nvidia 'wire; chmod 600 /dev/dxg; ids | grep device; nobody ctr-gpu doctor --json | jq -r .first'
	expect_line "warning device.permission"
	expect_line device.permission
	run on native-nvidia 'wire; chmod 660 /dev/nvidia0; nobody ctr-gpu doctor --json | jq -r ".first"; ids | grep device'
	expect_line device.permission
	expect_line "ok device.nvidia"
	run on native-nvidia 'rm /dev/nvidia0; mknod /dev/nvidia0 c 1 3; first; remedy device.wrong'
	expect_line device.wrong
	expect "ctr-gpu load --replace"
}

@test "a driver library that hangs or is broken is a warning" {
	run on wsl-dxcore-hangs 'wire; doctor'
	expect_status 0
	expect "did not answer within 2 s; used /dev/dxg itself"
	run on wsl-dxcore-broken 'wire; ids'
	expect_line "warning adapter.inventory"
}

# ---- engines ----

@test "no engine is set up, and no engine is there" {
	run on wsl-nvidia 'first; remedy engines.none'
	expect_line engines.none
	expect "sudo ctr-gpu setup docker"
	run on wsl-nvidia 'rm -f /usr/sbin/dockerd /usr/bin/{podman,containerd,lxc-start,crio,apptainer}; PATH=$CTR_GPU_BUILD/bin:/usr/bin:/bin; ids; remedy engines.none'
	expect_line "problem engines.none"
	expect_no_line "note docker.not-set-up"
	expect "Install Docker or Podman"
}

@test "Docker: version, and --gpus by a hook that is ours or another's" {
	run on wsl-nvidia 'wire; doctor'
	expect "Docker 20.10.24, not running: --gpus (ctr-gpu's hook)"
	run on wsl-nvidia 'cp /bin/true /usr/bin/nvidia-container-runtime-hook; doctor; ids'
	expect "--gpus (another toolkit's hook)"
	expect_line "note docker.other-toolkit"
	# A name that leads nowhere is no hook.
	run on wsl-nvidia 'ln -s /none /usr/bin/nvidia-container-runtime-hook; ids'
	expect_line "note docker.not-set-up"
}

@test "Docker: a runtime that daemon.json names, and one that is not there" {
	run on wsl-nvidia 'wire; mkdir -p /etc/docker; echo "{\"runtimes\": {\"nvidia\": {\"path\": \"/usr/bin/nvidia-container-runtime\"}}}" >/etc/docker/daemon.json; ids; cp /bin/true /usr/bin/nvidia-container-runtime; doctor'
	expect_line "warning docker.runtime"
	expect "--runtime=nvidia"
}

@test "Docker: CDI by version and by the daemon's settings" {
	for case in "27.0.1 {} no" "27.0.1 {\"features\":{\"cdi\":true}} yes" "28.2.0 {} yes" "28.2.0 {\"features\":{\"cdi\":false}} no" "20.10.24 {\"features\":{\"cdi\":true}} no"; do
		read -r version config wanted <<<"$case"
		run on wsl-nvidia "wire; mkdir -p /etc/docker; echo '$config' >/etc/docker/daemon.json
			printf 'Package: docker-ce\nStatus: install ok installed\nVersion: 5:$version-1~debian.12\n' >/run/status; mount --bind /run/status /var/lib/dpkg/status
			"'ctr-gpu cdi generate >/dev/null; doctor | grep "Docker "'
		expect "Docker $version, not running"
		if [[ $wanted == yes ]]; then expect "--device nvidia.com/gpu=all"; else expect_not "--device"; fi
	done
}

@test "Docker Desktop has a toolkit of its own" {
	run on wsl-nvidia 'rm -f /usr/sbin/dockerd; mkdir -p /run/mnt/wsl/docker-desktop; mount --bind /run/mnt /mnt; ids; doctor >/dev/null && echo works'
	expect_line "note docker.desktop"
	expect_line works
}

@test "a running Docker: asked for its version, its PATH seen, a restart advised" {
	docker_start_in_world='
		directory=$(mktemp -d /run/docker-XXXXXX)
		start() {
			"$@" dockerd --data-root "$directory/data" --exec-root "$directory/exec" --host "unix://$directory/socket" --pidfile "$directory/pid" \
				--iptables=false --ip6tables=false --bridge=none --cgroup-parent "$CTR_GPU_TEST_CGROUP" --exec-opt native.cgroupdriver=cgroupfs >"$directory/log" 2>&1 &
			for _ in {1..300}; do docker -H "unix://$directory/socket" version >/dev/null 2>&1 && return; sleep 0.05; done
			cat "$directory/log"; return 1
		}
		plain=/usr/sbin:/usr/bin:/sbin:/bin
		'
	run on wsl-nvidia "$docker_start_in_world"'
		wire; sleep 1.1; start env PATH="$plain"
		doctor | grep Docker; ids | grep docker
		nobody ctr-gpu doctor | grep Docker'
	expect "Docker 20.10.24+dfsg1, running: --gpus (ctr-gpu's hook)"
	expect "Docker 20.10.24, running, not to be asked by you: --gpus (ctr-gpu's hook)"
	expect_no_line "warning docker.restart"
	run on wsl-nvidia "$docker_start_in_world"'start env PATH="$plain"; sleep 1.1; wire; ids; remedy docker.restart'
	expect_line "warning docker.restart"
	expect "systemctl restart docker"
	run on wsl-nvidia "$docker_start_in_world"'wire; mkdir /run/programs; ln -s /usr/sbin/* /usr/bin/{containerd,containerd-shim-runc-v2,runc,sh} /run/programs 2>/dev/null; rm -f /run/programs/nvidia*; start env PATH=/run/programs; ids; remedy docker.path'
	expect_line "warning docker.path"
	expect "/usr/bin in its PATH"
}

@test "Podman: ours, NVIDIA's, both, a hook without its program, a directory of one's own" {
	run on wsl-nvidia 'hooks_d_file ctr-gpu.json "$hook"; doctor | grep Podman'
	expect "Podman 4.3.1: -e NVIDIA_VISIBLE_DEVICES=all (ctr-gpu's hook)"
	run on wsl-nvidia 'hooks_d_file ctr-gpu.json "$hook"; cp /bin/true /usr/bin/nvidia-container-toolkit; hooks_d_file oci-nvidia-hook.json /usr/bin/nvidia-container-toolkit; ids; remedy hooks.duplicate'
	expect_line "warning hooks.duplicate"
	expect "oci-nvidia-hook.json"
	run on wsl-nvidia 'hooks_d_file oci-nvidia-hook.json /usr/bin/nvidia-container-toolkit; ids'
	expect_line "warning hooks.no-program"
	expect_line "note podman.not-set-up"
	run on wsl-nvidia 'mkdir -p /etc/containers /run/my; printf "[engine]\n# hooks_dir = [\"/none\"]\nhooks_dir = [\n \"/run/my\",\n]\n" >/etc/containers/containers.conf; hooks_d=/run/my; hooks_d_file x.json "$hook"; ids'
	expect_line "ok podman.ready"
	run on wsl-nvidia 'mkdir -p "$hooks_d"; echo "{" >"$hooks_d/a.json"; ids'
	expect_line "warning hooks.unreadable"
}

@test "CRI-O: its own hooks directories" {
	run on wsl-nvidia 'printf "#!/bin/sh\n" >/usr/bin/crio; chmod 755 /usr/bin/crio; hooks_d_file ctr-gpu.json "$hook"; ids
		mkdir -p /etc/crio; printf "[crio.runtime]\nhooks_dir = [\"/none\"]\n" >/etc/crio/crio.conf; ids'
	expect_line "ok crio.ready"
	expect_line "note crio.not-set-up"
}

@test "containerd, LXC and Apptainer by nvidia-container-cli" {
	run on wsl-nvidia '
		for program in lxc-start apptainer; do cp /bin/true /usr/local/bin/$program 2>/dev/null || cp /bin/true /usr/bin/$program; done
		mkdir -p /etc/containerd; : >/etc/containerd/config.toml
		ids; ln -s "$CTR_GPU_BUILD/bin/ctr-gpu" /usr/bin/nvidia-container-cli; doctor'
	expect_line "note lxc.not-set-up"
	expect_line "note apptainer.not-set-up"
	expect "ctr run --gpus (ctr-gpu's nvidia-container-cli)"
	expect "hooks/nvidia (ctr-gpu's nvidia-container-cli)"
}

@test "what setup writes, doctor sees" {
	run on wsl-nvidia '
		rm -rf /etc/docker /etc/containerd /etc/crio /etc/containers/containers.conf.d; mkdir -p /etc/containerd; echo "version = 2" >/etc/containerd/config.toml
		printf "#!/bin/sh\n" >/usr/bin/crio; chmod 755 /usr/bin/crio; mount -t tmpfs tmpfs /var/lib
		ids >/run/before
		for engine in docker podman containerd crio; do ctr-gpu setup $engine >/dev/null 2>&1; done
		rm -rf /etc/cdi; cat /run/before; ids; doctor'
	for engine in docker podman containerd crio; do
		expect_line "note $engine.not-set-up"
		expect_line "ok $engine.ready"
	done
	expect "Docker, not running: --runtime=nvidia"
	expect "Podman: --runtime=nvidia"
	expect "CRI-O: runtime class nvidia"
	expect "containerd: runtime class nvidia"
}

@test "a Docker that came as a snap, one of a user who is nobody's business, one inside a container" {
	# What has the name of a daemon, and shows its arguments.
	fake='
		fake() { local file=$1; shift; mkdir -p "${file%/*}"; cp "$(command -v sleep)" "$file"; chmod 755 /run "$file"; "$@" "$file" 60 & for _ in {1..100}; do pgrep -x dockerd >/dev/null && break; sleep 0.05; done; }'
	run on wsl-nvidia "$fake"'; wire; mkdir -p /run/u /run/w; mount -t overlay -o lowerdir=/var/lib,upperdir=/run/u,workdir=/run/w overlay /var/lib
		fake /var/lib/snapd/snap/docker/1/bin/dockerd unshare --mount; ids; doctor; remedy docker.snap'
	expect "Docker (snap), running"
	run on wsl-nvidia "$fake"'; wire; fake /run/dockerd setpriv --reuid 4711 --regid 4711 --clear-groups; ps axo uid,comm | grep dockerd; doctor'
	expect "4711 dockerd"
	expect "Docker 20.10.24, not running"
	run on wsl-nvidia "$fake"'; wire; fake /run/dockerd unshare --pid --fork --kill-child; ps axo uid,comm | grep dockerd; doctor'
	expect "0 dockerd"
	expect "Docker 20.10.24, not running"
}

@test "the containerd that Docker has for itself alone, and another beside it" {
	# The first that /proc shows is Docker's.
	run on wsl-nvidia '
		rm -rf /etc/containerd
		mkfifo /run/wait
		printf "#!/bin/sh\nread line\n" >/run/containerd
		chmod +x /run/containerd
		fake() { /run/containerd "$@" <>/run/wait & until [[ $(cat "/proc/$!/comm") == containerd ]]; do sleep 0.01; done; }
		fake --config /var/run/docker/containerd/containerd.toml
		doctor | grep containerd || echo "only Docker"
		mkdir /etc/containerd
		touch /etc/containerd/config.toml
		doctor | grep containerd || echo "only Docker still"
		fake --config /srv/docker/containerd.toml
		doctor'
	expect_line "only Docker"
	expect_line "only Docker still"
	expect "containerd 1.6.20, running:"
}

# ---- CDI ----

@test "CDI specs: ours, a stale one, one of two files, a hook that inherits the image's environment, no spec at all" {
	run on wsl-hybrid 'ids; ctr-gpu cdi generate >/dev/null; ids; doctor'
	expect_line "note cdi.none"
	expect_line "ok cdi.spec"
	expect "of kind nvidia.com/gpu"
	expect "--device nvidia.com/gpu=all"
	run on wsl-nvidia 'ctr-gpu cdi generate --no-hooks >/dev/null; sed -i "s,nv_dispi[a-z0-9_.]*,nv_dispi.inf_amd64_before," /etc/cdi/*; ids; remedy cdi.error; doctor'
	expect_line "warning cdi.error"
	expect_line "sudo ctr-gpu refresh"
	expect "this is not there, since the driver has changed"
	expect_not "--device nvidia.com/gpu=all"
	run on wsl-nvidia 'text="{\"cdiVersion\": \"0.3.0\", \"kind\": \"nvidia.com/gpu\", \"devices\": [{\"name\": \"all\", \"containerEdits\": {\"hooks\": [{\"hookName\": \"createContainer\", \"path\": \"/bin/true\"}]}}]}"; spec /etc/cdi/a.json <<<"$text"; spec /etc/cdi/b.json <<<"$text"; doctor'
	expect "has no \"env\""
	expect "so that engines know neither"
	run on wsl-nvidia 'echo "{" | spec /etc/cdi/broken.json; ids'
	expect_line "warning cdi.refused"
}

@test "CDI specs of nvidia-ctk, in YAML, and of other things than GPUs" {
	run on wsl-nvidia 'spec /run/cdi/nvidia.yaml <<END
---
cdiVersion: 0.5.0
containerEdits:
  mounts:
  - containerPath: /usr/lib/wsl/drivers/nv_dispi.inf_amd64_0000/libcuda.so.1.1
    hostPath: /usr/lib/wsl/drivers/nv_dispi.inf_amd64_0000/libcuda.so.1.1
devices:
- containerEdits:
    deviceNodes:
    - path: /dev/dxg
  name: all
kind: nvidia.com/gpu
END
		doctor; sed -i "/mounts/,/hostPath/d; s/containerEdits:$/&/" /run/cdi/nvidia.yaml; sed -i "/^containerEdits:/d" /run/cdi/nvidia.yaml; ids'
	expect "this is not there: /usr/lib/wsl/drivers/nv_dispi.inf_amd64_0000/libcuda.so.1.1"
	expect_line "ok cdi.spec"
	run on wsl-nvidia 'spec /etc/cdi/net.json <<<"{\"cdiVersion\": \"0.3.0\", \"kind\": \"example.com/net\", \"devices\": [{\"name\": \"a\", \"containerEdits\": {\"deviceNodes\": [{\"path\": \"/dev/none\"}]}}]}"; ids'
	expect_line "note cdi.none"
}

# ---- users, SELinux, AppArmor ----

@test "rootless: a user without subordinate ids, with them, and namespaces forbidden" {
	run on wsl-nvidia 'wire; nobody ctr-gpu doctor --json | jq -r ".findings[] | select(.id | startswith(\"rootless\")) | .severity, .id, .remedy"'
	expect_line rootless.no-ids
	expect "usermod --add-subuids"
	run on wsl-nvidia 'wire; echo nobody:100000:65536 | tee /etc/subuid >/etc/subgid; SUDO_UID=65534 ctr-gpu doctor --json | jq -r ".findings[].id"'
	expect_line rootless.ready
	run on wsl-nvidia 'wire; echo 0 >/run/zero; mount --bind /run/zero /proc/sys/user/max_user_namespaces; ids; remedy rootless.forbidden'
	expect_line "note rootless.forbidden"
	expect "user.max_user_namespaces"
}

@test "SELinux that keeps containers from the device, and one that does not" {
	selinux='mkdir -p /run/selinux/booleans; echo 1 >/run/selinux/enforce; echo "0 0" >/run/selinux/booleans/container_use_devices
		mkdir -p /run/fs; for entry in /sys/fs/*; do mkdir /run/fs/${entry##*/}; mount --rbind "$entry" "/run/fs/${entry##*/}"; done; mkdir -p /run/fs/selinux; mount --rbind /run/fs /sys/fs; mount --bind /run/selinux /sys/fs/selinux;'
	run on wsl-nvidia "wire; $selinux"' ids; remedy security.selinux'
	expect_line "warning security.selinux"
	expect "setsebool -P container_use_devices 1"
	run on wsl-nvidia "wire; $selinux"' echo "1 1" >/run/selinux/booleans/container_use_devices; ids'
	expect_line "ok security.selinux"
}

# ---- images ----

@test "images: clean, baked, stub, compat, musl, without a cache, not there" {
	local root

	run on wsl-nvidia "wire; ids --rootfs=$(image debian); doctor --rootfs=$(image debian) >/dev/null && echo works"
	expect_line "ok image.clean"
	expect_line works
	run on wsl-nvidia "ids --rootfs=$(image baked)"
	expect_line "note image.baked"
	run on wsl-nvidia "ids --rootfs=$(image musl)"
	expect_line "warning image.musl"
	run on wsl-nvidia "ids --rootfs=$(image no-cache)"
	expect_line "note image.no-cache"
	run on wsl-nvidia 'wire; doctor --rootfs=/none'
	expect_status 1
	expect "cannot open /none"
	root=$BATS_TEST_TMPDIR/root
	image_copy debian "$root"
	mkdir -p "$root/usr/local/cuda-12.4/compat" "$root/usr/local/cuda-12.4/targets/lib/stubs"
	cp "$CTR_GPU_BUILD/test/stale/libcuda.so.1" "$root/usr/local/cuda-12.4/compat/libcuda.so.1"
	run on wsl-nvidia "ids --rootfs=$root"
	expect_line "note image.compat"
	cp "$CTR_GPU_BUILD/test/stale/libcuda.so.1" "$root/usr/local/cuda-12.4/targets/lib/stubs/libcuda.so"
	echo /usr/local/cuda-12.4/targets/lib/stubs >"$root/etc/ld.so.conf.d/stubs.conf"
	/sbin/ldconfig -r "$root"
	run on wsl-nvidia "ids --rootfs=$root"
	expect_line "warning image.stub"
}

@test "an image is looked at inside its root only" {
	local root=$BATS_TEST_TMPDIR/root

	mkdir -p "$root/etc" "$root/usr/local" "$BATS_TEST_TMPDIR/outside/compat"
	touch "$BATS_TEST_TMPDIR/outside/compat/libcuda.so.1"
	ln -s "$BATS_TEST_TMPDIR/outside" "$root/usr/local/cuda"
	ln -s /etc/ld.so.cache "$root/etc/ld.so.cache"
	mkfifo "$root/usr/lib64" 2>/dev/null || true
	run on wsl-nvidia "ids --rootfs=$root"
	expect_no_line "note image.compat"
	expect_line "note image.no-cache"
}

# ---- ourselves ----

@test "our own installation: a configuration that is wrong, a hook of another version, none, a driver process others may change" {
	run on wsl-nvidia 'wire; mkdir -p /etc/ctr-gpu; echo "{\"inventroy\": 1}" >/etc/ctr-gpu/config.json; ids; remedy ctr-gpu.config; doctor >/dev/null || echo fails'
	expect_line "problem ctr-gpu.config"
	expect "ctr-gpu-config(5)"
	expect_line fails
	run on wsl-nvidia 'wire; mkdir /run/bin /run/lib; cp "$CTR_GPU_BUILD"/bin/ctr-gpu* /run/bin; cp -a "$CTR_GPU_BUILD"/lib/*.so* /run/lib; PATH=/run/bin:$PATH
		ids | grep " ctr-gpu"
		cp /bin/true /run/bin/ctr-gpu-hook; ids | grep " ctr-gpu"; remedy ctr-gpu.version
		rm /run/bin/ctr-gpu-hook; ids | grep " ctr-gpu"
		chmod 777 /run/bin/ctr-gpu-driverd; remedy ctr-gpu.driverd'
	expect_line "ok ctr-gpu.complete"
	expect_line "warning ctr-gpu.version"
	expect "from one place"
	expect_line "problem ctr-gpu.hook"
	expect "chmod go-w"
}

@test "what hangs is left behind, and named" {
	run on wsl-nvidia 'wire; strace -f -qq -o /dev/null -P /etc/subuid -e trace=openat -e inject=openat:delay_enter=60000000 \
		setpriv --reuid 65534 --regid 65534 --clear-groups ctr-gpu --timeout 0.01 doctor'
	expect_status 1
	expect "looking at rootless containers did not come to an end"
	expect "GPU 0"
}

@test "a daemon that takes connections and says nothing does not hold it up" {
	run on wsl-nvidia 'wire
		perl -e "use Socket; \$0 = q(dockerd); socket S, AF_UNIX, SOCK_STREAM, 0; bind S, sockaddr_un(q(/run/docker.sock)); listen S, 0; sleep 60" &
		for _ in {1..100}; do [[ -S /run/docker.sock ]] && break; sleep 0.05; done
		timeout 20 ctr-gpu doctor'
	expect_status 0
	expect "running, not to be asked by you"
}
