# SPDX-License-Identifier: Apache-2.0
# bats file_tags=long
# shellcheck shell=bash disable=SC2016,SC2154
#
# ctr-gpu doctor on hosts that have what users complain about: each fault is found, under its name, with what to do.

load engines

# Functions for the host: what a healthy one has besides its GPU, and faults.
host_functions='
hook=$CTR_GPU_BUILD/bin/ctr-gpu-hook
hooks_d=/usr/share/containers/oci/hooks.d
wire() { ln -s "$hook" /usr/bin/nvidia-container-runtime-hook; }
hooks_d_file() { mkdir -p "$hooks_d"; echo "{\"version\": \"1.0.0\", \"hook\": {\"path\": \"$2\", \"args\": [\"hook\", \"prestart\"]}, \"when\": {\"always\": true}, \"stages\": [\"prestart\"]}" >"$hooks_d/$1"; }
nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
store() { echo /usr/lib/wsl/drivers/nv_dispi*; }
# copied DIRECTORY: the same files where they may be changed, as WSL shares them read-only
copied() { mkdir /run/copy; cp -a "$1/." /run/copy; mount --bind /run/copy "$1"; }
spec() { mkdir -p /etc/cdi /run/cdi; cat >"$1"; }
# Of whichever release this machine is, its packages have the versions of Debian 12.
if ! grep -qF "VERSION_ID=\"12\"" /etc/os-release; then
	awk -v versions="docker.io=20.10.24+dfsg1-1 podman=4.3.1+ds1-8 containerd=1.6.20~ds1-1 lxc=1:5.0.2-1" "BEGIN { split(versions, list, \" \"); for (i in list) { split(list[i], one, \"=\"); version[one[1]] = one[2] } }
		/^Package: / { name = \$2 } /^Version: / && name in version { \$0 = \"Version: \" version[name] } { print }" /var/lib/dpkg/status >/run/versions
	mount --bind /run/versions /var/lib/dpkg/status
fi
# This machine is the inside of a container, and has settings of its own perhaps.
rm -rf /etc/ctr-gpu "$hooks_d" /etc/cdi
unset CONTAINERS_CONF SUDO_UID
# Its service manager listens for its engines, and would start them; `idle` ends that.
mkdir -p /run/containerd /run/crio
perl -e "use Socket; my @s; for (qw(docker.sock containerd/containerd.sock crio/crio.sock)) { socket my \$s, AF_UNIX, SOCK_STREAM, 0; bind \$s, sockaddr_un(qq(/run/\$_)); listen \$s, 5; push @s, \$s } mkdir q(/run/listens); sleep 600" >/dev/null 2>&1 &
awaiting=$!
until [[ -d /run/listens ]]; do sleep 0.005; done
idle() { kill "$awaiting"; wait "$awaiting"; rm -f /run/docker.sock /run/containerd/containerd.sock /run/crio/crio.sock; } 2>/dev/null
'

# on PROFILE SCRIPT: run it on a host of that kind; `ids` in it prints "severity id" for each finding, "yes engine" or "no engine",
# and "yes engine.door" or "no engine.door why"
on() {
	local profile=$1
	shift
	sandbox "$profile" bash -c "$host_functions"'
		# Lines as they were before they were made to fit a screen.
		doctor() { ctr-gpu --timeout 2 doctor -v "$@" >/run/screen; local status=$?; sed -z "s/\\n                    \\([^>]\\)/ \\1/g" /run/screen; return $status; }
		ids() { ctr-gpu --timeout 2 doctor --json "$@" | jq -r "def word: if .works then \"yes \" else \"no \" end; (.findings[] | .severity + \" \" + .id), (.engines[] | .id as \$engine | word + \$engine, (.doors[] |
			word + \$engine + \".\" + .id + (if .because then \" \" + .because else \"\" end)))"; }
		first() { ctr-gpu --timeout 2 doctor --json "$@" | jq -r ".first"; }
		remedy() { ctr-gpu --timeout 2 doctor --json | jq -r --arg id "$1" ".findings[] | select(.id == \$id) | .remedy"; }
		'"$1"'
		# The shell stays: in its place the last command would be the parent of what listens, and strace waits for all of its children.
		exit'
}

setup_file() {
	require_root
}

# ---- a machine on which all is well ----

@test "a healthy WSL2 host: status 0, what works in six lines, and one screen with -v" {
	run on wsl-hybrid 'wire; ctr-gpu doctor'
	expect_status 0
	[[ ${lines[0]} == "A GPU container would work here with Docker, not with "* ]]
	[[ ${#lines[@]} -le 6 ]]
	expect_line "ok       docker     Docker 20.10.24, starts on demand: yes by --gpus all"
	expect_line "Everything that was looked at: ctr-gpu doctor -v"
	run on wsl-hybrid 'wire; ctr-gpu doctor -v'
	expect_status 0
	[[ ${lines[0]} == "A GPU container would work here with Docker, not with "* ]]
	expect "GPU 0 NVIDIA GeForce RTX 4070 Laptop GPU (nv_dispi.inf_amd64_4ac8a5f5c1b3b3ab)"
	expect "GPU 1 Intel(R) Iris(R) Xe Graphics"
	expect "CUDA 12.8"
	expect "Docker 20.10.24, starts on demand: yes by --gpus all; by --runtime=nvidia no,"
	expect_not "problem "
	expect_not "warning "
	[[ ${#lines[@]} -le 28 ]]
	for line in "${lines[@]}"; do [[ ${#line} -le 100 ]]; done
}

@test "a healthy native host, and one with GPUs of both kinds" {
	run on native-four 'wire; doctor'
	expect_status 0
	expect "NVIDIA driver 580.159.04, CUDA 13.0"
	expect "GPU 3 NVIDIA H200 at 0000:00:09.0"
	[[ ${#lines[@]} -le 24 ]]
	run on native-and-dxg 'wire; ids; doctor; echo "status $?"'
	expect_line "ok host.both"
	expect "GPUs behind /dev/dxg; NVIDIA's driver on this machine, Linux "
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
		touch /run/before
		nobody ctr-gpu doctor >/run/output; echo "status $?"
		ctr-gpu doctor >/run/output2
		find /etc /usr/lib/wsl /dev /var/lib/ctr-gpu -newer /run/before 2>/dev/null | grep -v "^/dev/null\|^/dev/pts\|^/dev/tty"
		cat /run/output'
	expect_line "status 0"
	[[ $output != *$'\n/etc'* && $output != *$'\n/usr/lib/wsl'* && $output != *$'\n/dev/'* && $output != *$'\n/var/lib'* ]]
	expect "A GPU container would work here"
}

@test "nothing is executed but ctr-gpu-driverd, ctr-gpu-guard and containerd" {
	run on wsl-hybrid 'wire; strace -f -qq -e trace=execve,execveat -o /run/trace ctr-gpu doctor >/dev/null; grep -o "execve[a-z]*(\"[^\"]*" /run/trace | sort -u'
	expect ctr-gpu-driverd
	expect "/usr/bin/containerd"
	[[ $(grep -c execve <<<"$output") -eq $((3 + $(grep -c ctr-gpu-guard <<<"$output"))) ]]
}

# ---- no adapter, for every one of the reasons ----

@test "an empty list of adapters, an old driver, a software device: each says which" {
	run on wsl-no-adapter 'ids; remedy adapter.none'
	expect_line "problem adapter.none"
	expect_not adapter.dxcore
	expect "TCC"
	run on wsl-old-driver 'first; doctor'
	expect_line adapter.unusable
	expect "[E_DRIVER_TOO_OLD]: its driver is WDDM 2.6; 2.7 is needed"
	expect "First: Update the GPU's driver in Windows"
	run on wsl-software-only 'doctor'
	expect_status 1
	expect "it is a software device"
	run on wsl-amd-npu 'wire; ids; doctor >/dev/null && echo works'
	expect_line "note adapter.no-nvidia"
	expect_line works
}

@test "no device: WSL with the GPU turned off, without it, and WSL1" {
	run on plain 'idle; first; ctr-gpu doctor'
	expect_line host.no-gpu
	# What does not run is said here, too.
	expect "Docker 20.10.24, not running"
	expect_status 1
	run on plain 'vm() { echo "flags : fpu$1" >/run/cpuinfo; mount --bind /run/cpuinfo /proc/cpuinfo; mkdir -p /sys/class/dmi/id; echo "$2" >/sys/class/dmi/id/sys_vendor; ctr-gpu doctor; }
		mount -t tmpfs tmpfs /sys/class
		vm " hypervisor sse" QEMU; vm " hypervisor" "Microsoft Corporation"; vm "" Dell'
	expect_line "A GPU container would not work here. First: Pass a GPU through to this virtual machine on its host"
	expect_line "    (Hyper-V: Add-VMGpuPartitionAdapter, or DDA). To see ctr-gpu without a GPU: sudo make demo, in"
	expect "First: Assign a GPU to this virtual machine on its Hyper-V"
	expect "First: See that the GPU, if there is one, has power"
	# One cause is told once, and with its remedy.
	[[ $(grep -c "^problem" <<<"$output") == 3 && $output != *"as above"* && $output != *">"* ]]
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

@test "symlinks among the libraries: whether they lead somewhere" {
	run on wsl-lib-links 'wire; ids; doctor >/dev/null && echo works'
	expect_line "ok store.complete"
	expect_not driver.linux-in-wsl
	expect_line works
	run on wsl-lib-links 'rm /usr/lib/wsl/lib2/libdxcore.so; doctor'
	expect "/usr/lib/wsl/lib: libdxcore.so leads nowhere"
}

@test "files that only root may read" {
	run on wsl-nvidia 'wire; chmod 700 /usr/lib/wsl/lib; doctor; ids'
	expect_line "warning store.closed"
	expect "/usr/lib/wsl/lib: only root may read it"
	run on wsl-nvidia 'wire; chmod 700 /usr/lib/wsl/lib/libcuda.so.1; ids; doctor'
	expect_line "warning store.closed"
	expect "/usr/lib/wsl/lib/libcuda.so.1: only root may read it"
}

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

@test "an NPU is called one, and its driver without anything for Linux worries nobody" {
	run on wsl-qualcomm 'doctor'
	expect "note     adapter    Snapdragon(R) X Elite"
	expect "ok       adapter    GPU 0 Qualcomm(R) Adreno(TM)"
	run on wsl-amd-xdna2 'doctor'
	expect "ok       adapter    NPU 0 AMD ("
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
	run on wsl-nvidia 'copied "$(store)"; rm "$(store)"/*; echo "rest $(ls "$(store)" | wc -l)"; first; doctor'
	expect_line adapter.unusable
	expect "has no library for Linux"
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
	expect_line docker.no-hook
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

@test "a libdxcore that hangs, crashes or is broken does so in containers, too, where ctr-gpu can do without it" {
	for profile in wsl-dxcore-hangs wsl-dxcore-crashes wsl-dxcore-broken; do
		run on "$profile" 'wire; doctor >/dev/null || echo "status $?"; first; ids; ctr-gpu --timeout 2 info | grep "^GPU"'
		expect_line "status 1"
		expect_line "adapter.dxcore"
		expect_line "no docker.gpus adapter.dxcore"
		expect "GPU 0 "
	done
}

@test "a libdxcore that was not tried, since no process can be started, is not to blame" {
	run on wsl-nvidia '(ulimit -u 2; exec setpriv --reuid 54329 --regid 54329 --clear-groups "$CTR_GPU_BUILD/bin/ctr-gpu" doctor -v)'
	expect "warning  adapter"
	expect "and so libdxcore was not tried"
	expect "ulimit -a"
	expect_not "wsl --update"
}

@test "a kernel that does not tell of its adapters, and a libdxcore that does" {
	run on wsl-nvidia 'wire; strace -f -b execve -qq -o /dev/null -e trace=ioctl -e inject=ioctl:error=EIO ctr-gpu --timeout 2 doctor --json |
		jq -r ".works, (.findings[] | .severity + \" \" + .id + \" \" + .text)"'
	expect_line true
	expect "warning adapter.inventory asking /dev/dxg for the adapters failed: Input/output error; used /usr/lib/wsl/lib/libdxcore.so"
	expect_not adapter.dxcore
}

@test "a device that root alone may open: its mode comes first, and no driver is blamed" {
	run on wsl-nvidia 'wire; chgrp video /dev/dxg; chmod 660 /dev/dxg; ctr-gpu doctor; ids; echo "no engine:"; rm /usr/bin/nvidia-container-runtime-hook; ctr-gpu doctor'
	[[ $(head -n 3 <<<"$output") == *"would work here with Docker"*"sudo chmod 0666 /dev/dxg"* ]]
	expect_line "warning device.permission"
	expect_not "wsl --update"
	[[ $output == *"no engine:"*"First: sudo chmod 0666 /dev/dxg"* ]]
}

@test "libraries on a mount from which nothing can be executed" {
	run on wsl-nvidia 'wire; for d in lib drivers; do mount -o remount,bind,noexec /usr/lib/wsl/$d; done; first; doctor'
	expect_line driver.noexec
	expect "First: sudo mount -o remount,bind,exec /usr/lib/wsl/lib;"
	expect "sudo mount -o remount,bind,exec /usr/lib/wsl/drivers;"
	expect_not "wsl --update"
	run on native-nvidia 'wire; libdir=/usr/lib/$(gcc -print-multiarch); for file in "$libdir"/libcuda.so.5*; do mount --bind "$file" "$file"; mount -o remount,bind,noexec "$file"; done; first; remedy driver.noexec'
	expect_line driver.noexec
	expect "remount,bind,exec /usr/lib/"
}

@test "gpuSupport=false in .wslconfig; a Hyper-V guest without a partition" {
	run on wsl-gpu-off 'wire; first; ids; doctor'
	expect_line host.turned-off
	expect_no_line "problem adapter.none"
	expect "First: Set gpuSupport=true under [wsl2] in the Windows user's"
	expect "ok       host       WSL2,"
	run on wsl-gpu-off 'mkdir -p /usr/lib/wsl/lib /usr/lib/wsl/drivers; wire; first; doctor'
	expect_line adapter.none
	expect "First: Give this machine a partition of a GPU on the Hyper-V"
	expect_not "wsl --shutdown"
	run on hyperv-stale-store 'wire; doctor'
	expect "Copy that directory from the Hyper-V host"
	expect_not "wsl --shutdown"
}

@test "GPUs of one name are told apart" {
	run on native-amd-partitions 'ctr-gpu doctor -v'
	expect "GPU 0 AMD Instinct MI300X OAM at 0000:05:00.0, /dev/dri/renderD128"
	expect "GPU 1 AMD Instinct MI300X OAM at 0000:05:00.0, /dev/dri/renderD129"
	run on wsl-two-same-store 'doctor'
	expect "GPU 1 NVIDIA GeForce RTX 4090 (nv_dispi.inf_amd64_4ac8a5f5c1b3b3ab) at 0000:02:00.0"
}

@test "what to type for CDI is of the kind that the GPUs are" {
	run on native-amd 'wire; doctor; ctr-gpu doctor --json | jq -r ".engines[].doors[].use"'
	expect "by --device amd.com/gpu=all no"
	expect_line "--device amd.com/gpu=all"
	expect_line "CDI amd.com/gpu=all"
	run on wsl-amd-npu 'ctr-gpu cdi generate >/dev/null; doctor'
	expect "by --device amd.com/gpu=all"
	expect_not "npu=all"
}

@test "an engine whose daemon does not run" {
	run on wsl-nvidia 'wire; ctr-gpu setup containerd >/dev/null; rm -r /etc/cdi; idle; ctr-gpu doctor; echo "status $?"; ids; mkdir -p /run/systemd/system; remedy docker.not-running'
	expect_line "status 1"
	expect "docker start"
	expect_line "no docker.gpus docker.not-running"
	expect_line "no docker.runtime docker.no-runtime"
	expect_line "no docker"
	expect_line "no containerd.runtime containerd.not-running"
	expect_line "sudo systemctl start docker"
	# The headline names it, also where another engine works; a line says why.
	run on wsl-nvidia 'idle; hooks_d_file ctr-gpu.json "$hook"; ctr-gpu doctor'
	expect "A GPU container would work here with Podman, not with Docker"
	expect "Docker 20.10.24, not running: no, because"
	# A socket that a daemon has left behind starts nothing.
	run on wsl-nvidia 'wire; kill "$awaiting"; wait "$awaiting"; ls /run/docker.sock
		# Of other tests that run now somebody listens, at a path of this name.
		unshare --net ctr-gpu doctor --json | jq -r ".engines[0].doors[] | \"no docker.\" + .id + \" \" + .because"'
	expect_line /run/docker.sock
	expect_line "no docker.gpus docker.not-running"
}

@test "lines are as long as the terminal" {
	run on wsl-no-adapter 'wire; export TERM=xterm; for columns in 70 160; do script -qec "stty cols $columns; ctr-gpu doctor -v" /dev/null | tr -d "\r" | sed "s/\x1b\[[0-9;]*m//g" >/run/$columns; wc -L <"/run/$columns"; done'
	[[ ${lines[0]} -le 70 && ${lines[1]} -gt 100 && ${lines[1]} -le 160 ]]
}

@test "a GPU that wsl.conf turns off, although its device is there" {
	run on wsl-nvidia 'wire; printf " [gpu]\n enabled = false\n" >/etc/wsl.conf; mount -t tmpfs tmpfs /usr/lib/wsl; ids; first; remedy host.turned-off'
	expect_line host.turned-off
	expect_line "no docker.gpus host.turned-off"
	expect "enabled=true under [gpu]"
	# As long as the driver is shared it works.
	run on wsl-nvidia 'wire; printf "[gpu]\nenabled=false\n" >/etc/wsl.conf; ids'
	expect_line "warning host.turned-off"
	expect_line "yes docker.gpus"
	run on wsl-nvidia 'wire; printf "# [gpu]\n[boot]\nenabled=false\n[gpu]\nenabled=true # and not false\n" >/etc/wsl.conf; ids'
	expect_no_line "warning host.turned-off"
}

# ---- engines ----

@test "the verdict is each engine's, worst first, and says nothing that its findings do not" {
	run on wsl-nvidia 'wire; hooks_d_file a.json /etc/passwd; doctor; ids >/run/ids
		# A door is open unless a finding closes it, and an engine works by an open door.
		ctr-gpu doctor --json | jq -e "
			. as \$all | [.engines[] | .id as \$engine | .works == ([.doors[].works] | any) and
				([.doors[] | .id as \$door | .works == ([\$all.findings[] | select((.engine == \$engine or .engine == \"*\") and (.closes | index(\$door)))] == [])] | all)] | all" >/dev/null &&
			echo consistent'
	expect_status 0
	[[ ${lines[0]} == "A GPU container would work here with Docker, not with Podman, "* ]] || [[ ${lines[0]} == "A GPU container would work here with Docker, not with Podman or "* ]]
	[[ ${lines[1]} == "problem  podman     Podman 4.3.1: no, because /usr/share/containers/oci/hooks.d/a.json runs /etc/passwd, which cannot be executed"* ]]
	expect_line consistent
	# Problems, then warnings, notes, and what is well.
	run on wsl-nvidia 'wire; chmod 600 /dev/dxg; hooks_d_file a.json /etc/passwd; doctor | grep -o "^\(problem\|warning\|note\|ok\)" | uniq | xargs'
	expect_line "problem warning note ok"
	# Nothing of the machine hides what is wrong with an engine, and the headline is about the machine.
	run on wsl-no-adapter 'wire; doctor; first'
	expect_line adapter.none
	expect "Docker 20.10.24, starts on demand: no, as above; then yes by --gpus all"
}

@test "colour is for terminals, and for whoever wants it" {
	run on wsl-nvidia 'wire; export TERM=xterm; ctr-gpu doctor | cat -v; echo ===; script -qec "ctr-gpu doctor" /dev/null | cat -v; echo ===; NO_COLOR=1 script -qec "ctr-gpu doctor" /dev/null | cat -v'
	[[ ${output%%===*} != *'^['* ]]
	[[ ${output#*===} == *'^[[32mA GPU container would work here'* ]]
	[[ ${output##*===} != *'^['* && ${output##*===} == *"would work here"* ]]
}

@test "what takes long is named on a terminal" {
	run on wsl-dxcore-hangs 'wire; script -qec "ctr-gpu --timeout 2 doctor" /dev/null; echo ===; ctr-gpu --timeout 2 doctor 2>&1'
	[[ ${output%%===*} == *"ctr-gpu: still looking at the adapters"* ]]
	[[ ${output##*===} != *"still looking"* ]]
}

@test "no engine is set up, and no engine is there" {
	run on wsl-nvidia 'doctor; first; remedy docker.no-hook; ids'
	expect_line docker.no-hook
	expect "Install ctr-gpu-nvidia-compat"
	expect "sudo ctr-gpu setup docker"
	expect_line "note docker.no-hook"
	expect_line "no docker.gpus docker.no-hook"
	expect_line "no docker.runtime docker.no-runtime"
	run on wsl-nvidia 'rm -f /usr/sbin/dockerd /usr/bin/{podman,containerd,lxc-start,crio,apptainer}; PATH=$CTR_GPU_BUILD/bin:/usr/bin:/bin; ids; remedy engines.none
		mount -t tmpfs tmpfs /var/lib/; mkdir -p /var/lib/rancher/k3s/agent; remedy engines.none'
	expect_line "problem engines.none"
	expect_no_line "no docker"
	expect "Install Docker or Podman"
	# Of a node that brings its own.
	expect "systemctl restart k3s"
}

@test "Docker: version, and --gpus by a hook that is ours or another's" {
	run on wsl-nvidia 'wire; doctor'
	expect "Docker 20.10.24, starts on demand: yes by --gpus all"
	run on wsl-nvidia 'cp /bin/true /usr/bin/nvidia-container-runtime-hook; ids'
	expect_line "yes docker.gpus"
	expect_line "note docker.other-toolkit"
	# A name that leads nowhere is no hook.
	run on wsl-nvidia 'ln -s /none /usr/bin/nvidia-container-runtime-hook; ids'
	expect_line "no docker.gpus docker.no-hook"
}

@test "Docker: a runtime that daemon.json names, and one that is not there" {
	run on wsl-nvidia 'wire; mkdir -p /etc/docker; echo "{\"runtimes\": {\"nvidia\": {\"path\": \"/usr/bin/nvidia-container-runtime\"}}}" >/etc/docker/daemon.json; ids; cp /bin/true /usr/bin/nvidia-container-runtime; ids'
	expect_line "no docker.runtime docker.runtime"
	expect_line "yes docker.gpus"
	expect_line "yes docker.runtime"
	expect_line "note docker.other-runtime"
	# One that every container is made by.
	run on wsl-nvidia 'wire; mkdir -p /etc/docker; echo "{\"default-runtime\": \"nvidia\", \"runtimes\": {\"nvidia\": {\"path\": \"/usr/bin/nvidia-container-runtime\"}}}" >/etc/docker/daemon.json; ids
		echo "{\"default-runtime\": \"nvidia\"}" >/etc/docker/daemon.json; remedy docker.default-runtime; echo "{\"default-runtime\": \"io.containerd.kata.v2\"}" >/etc/docker/daemon.json; ids | sed "s/^/kata: /"
		echo "{\"default-runtime\": \"\"}" >/etc/docker/daemon.json; ids | sed "s/^/empty: /"'
	expect_line "no docker.gpus docker.default-runtime"
	expect_line "no docker"
	expect "setup --remove all"
	expect_line "kata: yes docker.gpus"
	expect_line "empty: yes docker.gpus"
}

@test "Docker: a daemon.json that is not valid" {
	run on wsl-nvidia 'wire; hooks_d_file ctr-gpu.json "$hook"; mkdir -p /etc/docker; echo "{\"debug\": true,}" >/etc/docker/daemon.json; ids; doctor; for empty in "" " "; do printf "$empty" >/etc/docker/daemon.json; ids | sed "s/^/empty: /"; done'
	expect_line "problem docker.config"
	expect_line "no docker.gpus docker.config"
	expect_line "yes podman.hook"
	expect "/etc/docker/daemon.json:1:16: "
	expect "> Correct /etc/docker/daemon.json:1:16: Docker does not start with it."
	expect_line "empty: yes docker.gpus"
	expect_no_line "empty: problem docker.config"
}

@test "Docker: CDI by version and by the daemon's settings" {
	for case in "27.0.1 {} no" "27.0.1 {\"features\":{\"cdi\":true}} yes" "28.2.0 {} yes" "28.2.0 {\"features\":{\"cdi\":false}} no" "20.10.24 {\"features\":{\"cdi\":true}} no"; do
		read -r version config wanted <<<"$case"
		run on wsl-nvidia "wire; mkdir -p /etc/docker; echo '$config' >/etc/docker/daemon.json
			printf 'Package: docker-ce\nStatus: install ok installed\nVersion: 5:$version-1~debian.12\n' >/run/status; mount --bind /run/status /var/lib/dpkg/status
			"'ctr-gpu cdi generate >/dev/null; doctor | grep "Docker "'
		expect "Docker $version, starts on demand"
		if [[ $wanted == yes ]]; then expect "yes by --gpus all, --device nvidia.com/gpu=all"; else expect "by --device nvidia.com/gpu=all no, because"; fi
		[[ $version != 20* ]] || expect "Docker 20.10.24 has no CDI"
		[[ $version != 2[78]* || $wanted == yes ]] || expect "CDI is off in Docker $version"
	done
}

# By its version alone: no release of Debian has Docker 29.
@test "Docker 29: --gpus by CDI, where its directories have the devices" {
	local newer='packages() { printf "Package: docker-ce\nStatus: install ok installed\nVersion: 5:$1-1\n" >/run/status; mount --bind /run/status /var/lib/dpkg/status; }
		gpus() { echo "$1: $(ids | grep "docker\.gpus")"; }'

	run on wsl-nvidia "$newer"'
		ln -s "$hook" /usr/bin/nvidia-cdi-hook
		packages 29.2.0; gpus "no spec"
		ctr-gpu cdi generate >/dev/null; gpus "a spec"
		mkdir -p /etc/docker /run/specs; echo "{\"cdi-spec-dirs\": [\"/run/specs\"]}" >/etc/docker/daemon.json; gpus "it looks elsewhere"
		ctr-gpu cdi generate --output=/run/specs/ >/dev/null; rm -r /etc/cdi; gpus "the spec is there"
		packages 29.1.0; gpus "an older one"
		packages 29.2.0; rm /usr/bin/nvidia-cdi-hook; gpus "no program"'
	expect_line "no spec: no docker.gpus docker.no-hook"
	expect_line "a spec: yes docker.gpus"
	expect_line "it looks elsewhere: no docker.gpus docker.no-hook"
	expect_line "the spec is there: yes docker.gpus"
	expect_line "an older one: no docker.gpus docker.no-hook"
	expect_line "no program: no docker.gpus docker.no-hook"
	run on native-amd "$newer"'
		ctr-gpu cdi generate >/dev/null
		packages 29.2.0; gpus "an older one"
		packages 29.3.0; gpus "AMD"
		wire; gpus "and a hook"'
	expect_line "an older one: no docker.gpus docker.no-hook"
	expect_line "AMD: yes docker.gpus"
	expect_line "and a hook: yes docker.gpus"
}

@test "Docker Desktop has a toolkit of its own" {
	run on wsl-nvidia 'rm -f /usr/sbin/dockerd; mkdir -p /run/mnt/wsl/docker-desktop; mount --bind /run/mnt /mnt; ids; doctor >/dev/null && echo works'
	expect_line "note docker-desktop.own"
	expect_line "yes docker-desktop.gpus"
	expect_no_line "no docker"
	expect_line works
}

@test "a running Docker: asked for its version, its PATH seen, a restart advised" {
	docker_start_in_world='
		directory=$(mktemp -d /run/docker-XXXXXX)
		start() {
			"$@" dockerd --data-root "$directory/data" --exec-root "$directory/exec" --host "unix://$directory/socket" --pidfile "$directory/pid" \
				--iptables=false --ip6tables=false --bridge=none --cgroup-parent "$CTR_GPU_TEST_CGROUP" --exec-opt native.cgroupdriver=cgroupfs >"$directory/log" 2>&1 &
			soon docker -H "unix://$directory/socket" version && return
			cat "$directory/log"; return 1
		}
		plain=/usr/sbin:/usr/bin:/sbin:/bin
		idle
		'
	run on wsl-nvidia "$docker_start_in_world"'
		wire; sleep 1.1; start env PATH="$plain"
		doctor | grep Docker; ids | grep docker
		nobody ctr-gpu doctor | tr "\n" " " | tr -s " "
		mkdir -p /etc/docker; echo "{" >/etc/docker/daemon.json; ids'
	expect "Docker $(dockerd --version | sed 's/^Docker version \([^,]*\),.*/\1/'), running: yes by --gpus all"
	# Who is not in its group.
	expect "Docker 20.10.24, running: no, because you may not use its socket"
	expect "usermod --append --groups docker"
	expect_no_line "problem docker.restart"
	expect_line "yes docker.gpus"
	expect_line "warning docker.config"
	run on wsl-nvidia "$docker_start_in_world"'start env PATH="$plain"; sleep 1.1; wire; ids; remedy docker.restart; mkdir -p /run/systemd/system; remedy docker.restart; docker -H "unix://$directory/socket" create --gpus all none 2>&1'
	expect_line "problem docker.restart"
	expect_line "no docker.gpus docker.restart"
	expect_line "sudo service docker restart"
	expect_line "sudo systemctl restart docker"
	# An upgrade makes the links anew, and the daemon that had them before has them still.
	run on wsl-nvidia "$docker_start_in_world"'rm -rf /usr/share/doc/ctr-gpu-nvidia-compat; mkdir /usr/share/doc/ctr-gpu-nvidia-compat; wire; sleep 1.1; start env PATH="$plain"; sleep 1.1; rm /usr/bin/nvidia-container-runtime-hook; wire; ids'
	expect_line "yes docker.gpus"
	run on wsl-nvidia "$docker_start_in_world"'wire; mkdir /run/programs; ln -s /usr/sbin/* /usr/bin/{containerd,containerd-shim-runc-v2,runc,sh} /run/programs 2>/dev/null; rm -f /run/programs/nvidia*; start env PATH=/run/programs; ids; remedy docker.path'
	expect_line "no docker.gpus docker.path"
	expect "/usr/bin in its PATH"
}

@test "Podman: ours, NVIDIA's, both, a directory of one's own, and none that Podman reads" {
	run on wsl-nvidia 'hooks_d_file ctr-gpu.json "$hook"; doctor | grep Podman'
	expect "Podman 4.3.1: yes by -e NVIDIA_VISIBLE_DEVICES=all"
	run on wsl-nvidia 'hooks_d_file ctr-gpu.json "$hook"; cp /bin/true /usr/bin/nvidia-container-toolkit; hooks_d_file oci-nvidia-hook.json /usr/bin/nvidia-container-toolkit; ids; remedy hooks.duplicate'
	expect_line "warning hooks.duplicate"
	expect "oci-nvidia-hook.json"
	run on wsl-nvidia 'mkdir -p /etc/containers /run/my; printf "[engine]\n# hooks_dir = [\"/none\"]\nhooks_dir = [\n \"/run/my\", # ours\n]\n" >/etc/containers/containers.conf; hooks_d=/run/my; hooks_d_file x.json "$hook"; ids'
	expect_line "yes podman.hook"
	# Where the tarball registers it.
	run on wsl-nvidia 'hooks_d=/etc/containers/oci/hooks.d; hooks_d_file ctr-gpu.json "$hook"; ids; remedy hooks.unread
		printf "[engine]\nhooks_dir = [\"$hooks_d\"]\n" >/etc/containers/containers.conf; ids | sed "s/^/told: /"'
	expect_line "no podman.hook hooks.unread"
	expect "hooks_dir"
	expect_line "told: yes podman.hook"
	run on wsl-nvidia 'mkdir -p /etc/containers; printf "[engine]\nruntime = \"nvidia\"\n[engine.runtimes]\nnvidia = [\"/none/ctr-gpu-runtime\"]\n" >/etc/containers/containers.conf; hooks_d_file ctr-gpu.json "$hook"; ids
		printf "[engine\n" >/etc/containers/containers.conf; doctor'
	expect_line "no podman.hook podman.runtime"
	expect "Podman 4.3.1: no, because /etc/containers/containers.conf:1:"
}

@test "Podman: root reads no file that a user's environment names" {
	# Before its version 5 Podman reads nothing of root's home.
	run on wsl-nvidia 'hooks_d_file ctr-gpu.json "$hook"; mkdir -p /run/home/.config/containers; printf "[engine]\nhooks_dir = [\"/none\"]\n" >/run/home/.config/containers/containers.conf; export HOME=/run/home; ids'
	expect_line "yes podman.hook"
	mine='sed "/^Package: podman\$/,/^Version:/s/^Version:.*/Version: 5.4.2/" /var/lib/dpkg/status >/run/newer; mount --bind /run/newer /var/lib/dpkg/status; mkdir /run/theirs; printf "[engine]\nhooks_dir = [\"/none\"]\n" >/run/theirs/containers.conf; chown -R 1000 /run/theirs; hooks_d_file ctr-gpu.json "$hook"
		tell() { ids | grep podman; doctor | grep theirs; }'
	for variable in 'CONTAINERS_CONF=/run/theirs/containers.conf' 'CONTAINERS_CONF=run/theirs/containers.conf' \
		'HOME=/run/theirs/home' 'XDG_CONFIG_HOME=/run/theirs/home/.config'; do
		run on wsl-nvidia "$mine"'; mkdir -p /run/theirs/home/.config/containers; cp /run/theirs/containers.conf /run/theirs/home/.config/containers; cd /; export '"$variable; tell"
		expect_line "warning podman.config-unread"
		expect "theirs/"
		expect " is not a file that root alone may change"
		expect_line "yes podman.hook"
		run on wsl-nvidia "$mine"'; mkdir -p /run/theirs/home/.config/containers; cp /run/theirs/containers.conf /run/theirs/home/.config/containers; cd /; chown -R 0:0 /run/theirs; export '"${variable/=run/=/run}; tell"
		expect_no_line "warning podman.config-unread"
		expect_line "no podman.hook hooks.unread"
	done
}

@test "Podman: a vendor's hook that cannot be read or executed stops every container, one that is not there none; as Podman itself" {
	plain_podman='
		printf "[containers]\nnetns = \"none\"\ndefault_ulimits = [\"nofile=1024:1024\", \"nproc=4096:4096\"]\npids_limit = 0\nlog_driver = \"k8s-file\"\n[engine]\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"none\"\nhooks_dir = [\"$hooks_d\"]\n" >/run/containers.conf
		printf "[storage]\ndriver = \"vfs\"\ngraphroot = \"/run/graph\"\nrunroot = \"/run/roots\"\n" >/run/storage.conf
		export CONTAINERS_CONF=/run/containers.conf CONTAINERS_STORAGE_CONF=/run/storage.conf
		mkdir /run/image && cp /bin/busybox /run/image && tar -C /run/image -c . | podman import -q - plain >/dev/null 2>&1
		try() { ids | grep "docker.gpus\|podman.hook\|hooks"; memlock podman run --cgroup-parent "$CTR_GPU_TEST_CGROUP" --rm plain /busybox echo "$1: starts" 2>&1 || echo "$1: does not start"; }
		printf "#!/none/interpreter\n" >/run/script; chmod 755 /run/script; : >/run/data
		hooks_d_file ctr-gpu.json "$hook"
		'
	run on wsl-nvidia "$plain_podman"'wire; hooks_d_file x.json /run/data; try data; hooks_d_file x.json /run/script; try script; echo "{" >"$hooks_d/x.json"; try json'
	expect_line "data: does not start"
	expect_line "script: does not start"
	expect_line "json: does not start"
	[[ $(grep -cx "no podman.hook hooks.broken" <<<"$output") == 2 ]]
	expect_line "no podman.hook hooks.unreadable"
	expect_no_line "yes podman.hook"
	# It is Podman's fault alone.
	[[ $(grep -cx "yes docker.gpus" <<<"$output") == 3 ]]
	run on wsl-nvidia "$plain_podman"'hooks_d_file x.json /none/program; try missing'
	expect_line "missing: starts"
	expect_line "yes podman.hook"
	expect_line "warning hooks.no-program"
}

@test "CRI-O: its own hooks directories" {
	run on wsl-nvidia 'printf "#!/bin/sh\n" >/usr/bin/crio; chmod 755 /usr/bin/crio; hooks_d_file ctr-gpu.json "$hook"; ids
		mkdir -p /etc/crio; printf "[crio.runtime]\nhooks_dir = [\"/none\"]\n" >/etc/crio/crio.conf; ids
		rm /etc/crio/crio.conf; mkdir -p /etc/containers/oci/hooks.d; mv "$hooks_d/ctr-gpu.json" /etc/containers/oci/hooks.d/; ids | sed "s/^/etc: /"'
	expect_line "yes crio.hook"
	expect_line "no crio.hook hooks.unread"
	expect_line "etc: no crio.hook hooks.unread"
}

@test "CRI-O: a table that is a comment, one whose name is quoted, one whose program is gone" {
	crio='printf "#!/bin/sh\n" >/usr/bin/crio; chmod 755 /usr/bin/crio; mkdir -p /etc/crio/crio.conf.d
		conf() { printf "$@" >/etc/crio/crio.conf.d/50.conf; ids | grep "crio.runtime"; }'
	run on wsl-nvidia "$crio"'; conf "# [crio.runtime.runtimes.nvidia]\n# runtime_path = \"/bin/true\"\n"'
	expect_line "no crio.runtime crio.no-runtime"
	run on wsl-nvidia "$crio"'; conf "[crio.runtime.runtimes.\"nvidia\"]\nruntime_path = \"/bin/true\"\n"'
	expect_line "yes crio.runtime"
	run on wsl-nvidia "$crio"'; conf "[crio.runtime.runtimes.nvidia]\nruntime_path = \"/none\"\n"; conf "[crio.runtime]\ndefault_runtime = \"nvidia\"\n"'
	expect_line "no crio.runtime crio.runtime"
	expect_no_line "yes crio.runtime"
}

@test "containerd, LXC and Apptainer by nvidia-container-cli" {
	run on wsl-nvidia '
		for program in lxc-start apptainer; do cp /bin/true /usr/local/bin/$program 2>/dev/null || cp /bin/true /usr/bin/$program; done
		mkdir -p /etc/containerd; : >/etc/containerd/config.toml
		ids; ln -s "$CTR_GPU_BUILD/bin/ctr-gpu" /usr/bin/nvidia-container-cli; doctor'
	expect_line "no lxc.cli lxc.no-cli"
	expect_line "no apptainer.cli apptainer.no-cli"
	expect "yes by ctr run --gpus 0"
	expect "LXC 5.0.2: yes by lxc.hook.mount = /usr/share/lxc/hooks/nvidia"
}

@test "what setup writes, doctor sees" {
	run on wsl-nvidia '
		rm -rf /etc/docker /etc/containerd /etc/crio /etc/containers/containers.conf.d; mkdir -p /etc/containerd; echo "version = 2" >/etc/containerd/config.toml
		printf "#!/bin/sh\n" >/usr/bin/crio; chmod 755 /usr/bin/crio; mount -t tmpfs tmpfs /var/lib
		ids | grep runtime | sed "s/^/before: /" >/run/before
		for engine in docker podman containerd crio; do ctr-gpu setup $engine >/dev/null 2>&1; done
		rm -rf /etc/cdi; cat /run/before; ids; doctor'
	for engine in docker podman containerd crio; do
		expect_line "before: no $engine.runtime $engine.no-runtime"
		expect_line "yes $engine.runtime"
	done
	expect "Docker, starts on demand: yes by --runtime=nvidia"
	expect "Podman: yes by --runtime=nvidia"
	expect "CRI-O, starts on demand: yes by runtime class nvidia"
	expect "containerd, starts on demand: yes by runtime class nvidia"
}

@test "a Docker that came as a snap, one of a user who is nobody's business, one inside a container" {
	# What has the name of a daemon, and shows its arguments.
	fake='
		fake() { local file=$1; shift; mkdir -p "${file%/*}"; cp "$(command -v sleep)" "$file"; chmod 755 /run "$file"; "$@" "$file" 60 & soon pgrep -x dockerd; }'
	run on wsl-nvidia "$fake"'; wire; mkdir -p /run/u /run/w; mount -t overlay -o lowerdir=/var/lib,upperdir=/run/u,workdir=/run/w overlay /var/lib
		fake /var/lib/snapd/snap/docker/1/bin/dockerd unshare --mount; ids; doctor; remedy docker.snap'
	expect "Docker (snap), running"
	run on wsl-nvidia "$fake"'; wire; fake /run/dockerd setpriv --reuid 4711 --regid 4711 --clear-groups; ps axo uid,comm | grep dockerd; doctor'
	expect "4711 dockerd"
	expect "Docker 20.10.24, starts on demand"
	run on wsl-nvidia "$fake"'; wire; fake /run/dockerd unshare --pid --fork --kill-child; ps axo uid,comm | grep dockerd; doctor'
	expect "0 dockerd"
	expect "Docker 20.10.24, starts on demand"
}

@test "the containerd that Docker has for itself alone, and another beside it" {
	# The first that /proc shows is Docker's.
	run on wsl-nvidia '
		rm -rf /etc/containerd /run/containerd/containerd.sock
		mkfifo /run/wait
		mkdir -p /run/programs
		echo "read line" >/run/script
		cp /bin/sh /run/programs/containerd
		fake() { /run/programs/containerd /run/script "$@" <>/run/wait & until [[ $(cat "/proc/$!/comm") == containerd ]]; do sleep 0.01; done; }
		fake --config /var/run/docker/containerd/containerd.toml
		doctor | grep containerd || echo "only Docker"
		mkdir /etc/containerd
		touch /etc/containerd/config.toml
		doctor | grep containerd || echo "only Docker still"
		# With another --exec-root, which not everybody may look into.
		cp /bin/sh /run/programs/dockerd
		mkdir -m 700 /run/engine
		echo "/run/programs/containerd /run/script --config /run/engine/containerd/containerd.toml <>/run/wait & read line" >/run/starts
		/run/programs/dockerd /run/starts <>/run/wait &
		until [[ $(pgrep -xc containerd) -ge 2 ]]; do sleep 0.01; done
		nobody ctr-gpu doctor 2>&1 | grep -E "^warning +containerd" || echo "no warning"
		fake --config /srv/docker/containerd.toml
		doctor'
	expect_line "only Docker"
	expect_line "only Docker still"
	expect_line "no warning"
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
	expect_line "no podman.cdi cdi.error"
	run on wsl-nvidia 'text="{\"cdiVersion\": \"0.3.0\", \"kind\": \"nvidia.com/gpu\", \"devices\": [{\"name\": \"all\", \"containerEdits\": {\"hooks\": [{\"hookName\": \"createContainer\", \"path\": \"/bin/true\"}]}}]}"; spec /etc/cdi/a.json <<<"$text"; spec /etc/cdi/b.json <<<"$text"; doctor'
	expect "has no \"env\""
	expect "so that engines know neither"
	run on wsl-nvidia 'echo "{" | spec /etc/cdi/broken.json; ids'
	expect_line "warning cdi.refused"
	# Root's engines read what the user may not.
	run on wsl-nvidia 'ctr-gpu cdi generate >/dev/null; chmod 600 /etc/cdi/*; nobody ctr-gpu doctor --json | jq -r ".findings[] | select(.id | startswith(\"cdi.\")) | .id, .remedy"'
	[[ $output == "cdi.unreadable
sudo chmod a+r /etc/cdi/ctr-gpu-nvidia.json; for root's engines: sudo ctr-gpu doctor" ]] || { echo "$output"; return 1; }
}

@test "CDI specs where an engine does not read them" {
	directories='packages() { printf "Package: docker-ce\nStatus: install ok installed\nVersion: 5:28.2.0-1\n" >/run/status; mount --bind /run/status /var/lib/dpkg/status; }
		printf "#!/bin/sh\n" >/usr/bin/crio; chmod 755 /usr/bin/crio; packages; mkdir -p /etc/docker /etc/crio /run/specs
		echo "{\"cdi-spec-dirs\": [\"/run/specs\"]}" >/etc/docker/daemon.json; printf "[crio.runtime]\ncdi_spec_dirs = [\"/run/specs\"]\n" >/etc/crio/crio.conf;'
	run on wsl-nvidia "wire; $directories"' ctr-gpu setup docker; ids; remedy docker.cdi-directories; ctr-gpu cdi generate --output=/run/specs/ >/dev/null; rm -r /etc/cdi; echo "there:"; ids'
	expect "Docker does not read CDI specs in /etc/cdi, but in /run/specs"
	[[ $output == *"no docker.cdi docker.cdi-directories"*"no crio.cdi crio.cdi-directories"*"sudo ctr-gpu cdi generate --output=/run/specs/"*"there:"*"yes docker.cdi"*"yes crio.cdi"* ]]
	expect_line "no podman.cdi cdi.none"
	# What --gpus stands for, too.
	run on wsl-nvidia 'sed "/^Package: podman\$/,/^Version:/s/^Version:.*/Version: 5.8.6/" /var/lib/dpkg/status >/run/newer; mount --bind /run/newer /var/lib/dpkg/status; mkdir -p /etc/containers /run/specs
		printf "[engine]\ncdi_spec_dirs = [\"/run/specs\"]\n" >/etc/containers/containers.conf
		ctr-gpu cdi generate >/dev/null; ids; rm -r /etc/cdi; ctr-gpu cdi generate --output=/run/specs/ >/dev/null; echo "there:"; ids'
	[[ $output == *"no podman.gpus podman.no-kind"*"no podman.cdi podman.cdi-directories"*"there:"*"yes podman.gpus"*"yes podman.cdi"* ]]
}

@test "containerd itself says what an imported file has made of its runtimes" {
	run on wsl-nvidia 'idle; mkdir -p /etc/containerd/conf.d; printf "version = 2\nimports = [\"/etc/containerd/conf.d/*.toml\"]\n" >/etc/containerd/config.toml
		ctr-gpu setup containerd >/dev/null; ids | grep "containerd.runtime\|hidden" | sed "s/^/before: /"
		printf "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".registry]\nconfig_path = \"/x\"\n" >/etc/containerd/conf.d/r.toml; ids; doctor
		containerd config dump | grep -q "runtimes.*nvidia" || echo "containerd has none"'
	expect_line "before: no containerd.runtime containerd.not-running"
	# From version 2 on it merges the tables of both.
	if [[ $output == *"containerd has none"* ]]; then
		expect_line "no containerd.runtime containerd.hidden"
		expect "/etc/containerd/conf.d/r.toml, which it imports, hides it"
	else
		expect_line "no containerd.runtime containerd.not-running"
		expect_not "containerd.hidden"
	fi
}

@test "containerd without its CRI plugin, as Docker has it in its package" {
	run on wsl-nvidia 'idle; mkdir -p /etc/containerd; echo "disabled_plugins = [\"cri\"]" >/etc/containerd/config.toml; ids | sed "s/^/before: /"
		ctr-gpu setup containerd >/dev/null; ids; doctor; sed -i 1d /etc/containerd/config.toml; ids | sed "s/^/on: /"'
	expect_line "before: note containerd.no-runtime"
	expect_line "no containerd.runtime containerd.cri-off"
	expect "/etc/containerd/config.toml turns the CRI plugin off (disabled_plugins)"
	expect_not "hides it"
	expect_line "on: no containerd.runtime containerd.not-running"
}

@test "containerd 2 takes no runtimes from a file of version 1" {
	run on wsl-nvidia 'idle; sed "/^Package: containerd\$/,/^Version:/s/^Version:.*/Version: 2.1.9/" /var/lib/dpkg/status >/run/newer; mount --bind /run/newer /var/lib/dpkg/status
		printf "#!/bin/sh\necho version = 3\n" >/usr/bin/containerd; mkdir -p /etc/containerd; echo "version = 1" >/etc/containerd/config.toml
		ctr-gpu setup containerd >/dev/null; ids; remedy containerd.old-file'
	expect_line "no containerd.runtime containerd.old-file"
	expect "containerd config migrate"
}

@test "containerd 2 has CDI on, unless a file that is imported turns it off" {
	run on wsl-nvidia 'idle; sed "/^Package: containerd\$/,/^Version:/s/^Version:.*/Version: 2.1.9/" /var/lib/dpkg/status >/run/newer; mount --bind /run/newer /var/lib/dpkg/status
		mkdir -p /etc/containerd; printf "version = 3\nimports = [\"cdi.toml\"]\n" >/etc/containerd/config.toml
		printf "version = 3\n[plugins.\"io.containerd.cri.v1.runtime\"]\nenable_cdi = false\n" >/etc/containerd/cdi.toml
		printf "#!/bin/sh\ncd /etc/containerd; cat cdi.toml; tail -n +3 config.toml\n" >/usr/bin/containerd; ctr-gpu setup containerd; ids; remedy containerd.cdi-off'
	expect "/etc/containerd/cdi.toml turns CDI off (enable_cdi), and counts more than /etc/containerd/config.toml"
	expect_line "no containerd.cdi containerd.cdi-off"
	expect_line "Write enable_cdi = true in /etc/containerd/cdi.toml."
}

@test "a containerd that was started before its file was changed has what the file said then" {
	run on wsl-nvidia 'idle; mkdir -p /etc/containerd; printf "version = 2\n" >/etc/containerd/config.toml
		serve() { containerd --root /run/containerd-root --state /run/containerd-state "$@" >/run/log 2>&1 & daemon=$!; until [[ -S /run/containerd/containerd.sock ]]; do kill -0 $daemon || { cat /run/log; exit 1; }; sleep 0.05; done; }
		serve; ctr-gpu setup containerd >/dev/null; ids | sed "s/^/before: /"; remedy containerd.restart
		kill $daemon; wait $daemon; rm /run/containerd/containerd.sock
		touch --date="1 minute ago" /etc/containerd/config.toml; serve; ids; kill $daemon; wait $daemon'
	expect_line "before: no containerd.runtime containerd.restart"
	expect "and start it again as it was started"
	expect_line "yes containerd.runtime"
	expect_no_line "problem containerd.restart"
}

@test "CRI-O itself says what it has" {
	crio='idle; cp "$(type -P perl)" /usr/bin/crio; mkdir -p /etc/crio; hooks_d_file ctr-gpu.json "$hook"
		printf "[crio.runtime.runtimes.nvidia]\nruntime_path = \"/bin/true\"\n" >/etc/crio/crio.conf
		serve() { /usr/bin/crio -e "use Socket; socket my \$s, AF_UNIX, SOCK_STREAM, 0; bind \$s, sockaddr_un(q(/run/crio/crio.sock)); listen \$s, 5; mkdir q(/run/crio/ready);
			while (accept my \$c, \$s) { sysread \$c, my \$q, 4096 or next; syswrite \$c, \$q =~ m(^GET /config ) ? qq(HTTP/1.0 200 OK\r\n\r\n\$ARGV[0]) : qq(HTTP/1.0 404 Not Found\r\n\r\n); }" -- "$1" & until [[ -d /run/crio/ready ]]; do sleep 0.005; done; }
		ends() { kill $!; wait $!; rm -r /run/crio/*; }'
	run on wsl-nvidia "$crio"'
		serve "[crio.runtime]
default_runtime = \"runc\"
hooks_dir = [\"/none\"]
cdi_spec_dirs = [\"/elsewhere\"]
[crio.runtime.runtimes.runc]
runtime_path = \"\""; ids; remedy crio.reload; ends
		serve "[crio.runtime.runtimes.nvidia]
runtime_path = \"/bin/true\""; rm /etc/crio/crio.conf; ids | sed "s/^/changed: /"; ends
		serve "["; ids | sed "s/^/nothing: /"; ends'
	expect_line "no crio.runtime crio.reload"
	expect "and start it again as it was started"
	expect_line "no crio.cdi crio.cdi-directories"
	expect_line "no crio.hook hooks.unread"
	expect_line "changed: yes crio.runtime"
	expect_line "changed: yes crio.hook"
	expect_line "nothing: no crio.runtime crio.no-runtime"
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
	expect_line warning
	expect "usermod --add-subuids"
	# Not those of another user, of either file.
	run on wsl-nvidia 'wire; echo joe:100000:65536 >/etc/subuid; printf "joe:100000:65536\nann:165536:70000\n" >/etc/subgid; nobody ctr-gpu doctor --json | jq -r ".findings[] | select(.id == \"rootless.no-ids\") | .remedy"'
	[[ $output == "sudo usermod --add-subuids 235536-301071 --add-subgids 235536-301071 nobody" ]] || { echo "$output"; return 1; }
	# A range up to the last id leaves what is before it; the id behind the last is none.
	run on wsl-nvidia 'wire; remedy() { nobody ctr-gpu doctor --json | jq -r ".findings[] | select(.id == \"rootless.no-ids\") | .remedy"; }
		echo containers:2147483647:2147483648 | tee /etc/subuid >/etc/subgid; remedy
		echo a:100000:4294801759 | tee /etc/subuid >/etc/subgid; remedy
		echo a:100000:4294801760 | tee /etc/subuid >/etc/subgid; remedy'
	[[ $output == "sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 nobody
sudo usermod --add-subuids 4294901759-4294967294 --add-subgids 4294901759-4294967294 nobody
See who has them, and give some to this user: subuid(5)." ]] || { echo "$output"; return 1; }
	# A file of the size that is read at most takes no time that a person would notice.
	run on wsl-nvidia 'wire; seq -f "u%.0f:100000:1" 1 400000 | tee /etc/subuid >/etc/subgid
		SUDO_UID=65534 timeout 10 ctr-gpu --timeout 2 doctor --json | jq -r ".findings[] | select(.id == \"rootless.no-ids\") | .severity"'
	expect_line warning
	run on wsl-nvidia 'wire; rm -f /etc/sub{u,g}id; echo "subid: sss" >>/etc/nsswitch.conf; SUDO_UID=65534 ids'
	expect_line "note rootless.service"
	expect_no_line "warning rootless.no-ids"
	# Where no engine needs them, nothing is missing.
	run on wsl-nvidia 'rm -f /usr/bin/podman; PATH=$CTR_GPU_BUILD/bin:/usr/bin:/bin; wire; nobody ctr-gpu doctor --json | jq -r ".findings[] | select(.id == \"rootless.no-ids\") | .severity"'
	expect_line note
	run on wsl-nvidia 'wire; echo nobody:100000:65536 | tee /etc/subuid >/etc/subgid; SUDO_UID=65534 ctr-gpu doctor --json | jq -r ".findings[].id"'
	expect_line rootless.ready
	# A file of as many users as a university has, and a program without its rights.
	run on wsl-nvidia 'wire; { for i in {1..20000}; do echo "u$i:$((100000 + i * 65536)):65536"; done; echo nobody:100000:65536; } | tee /etc/subuid >/etc/subgid; SUDO_UID=65534 ids
		cp /usr/bin/true /run/newgidmap; mount --bind /run/newgidmap /usr/bin/newgidmap; SUDO_UID=65534 ids'
	expect_line "ok rootless.ready"
	expect_line "warning rootless.no-newuidmap"
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
	# Each kind of GPU has a node of its own, and a host without any has none that SELinux could keep.
	run on native-and-dxg "wire; $selinux"' doctor'
	expect "SELinux is enforcing and keeps containers from /dev/dxg"
	expect "SELinux is enforcing and keeps containers from /dev/nvidiactl"
	run on plain "$selinux"' ids'
	expect_no_line "ok security.none"
	# The reference policy, Debian's, has another boolean, and lets containers use devices of one type; or there is none.
	run on wsl-nvidia "wire; $selinux"' cd /run/selinux/booleans; rm *; remedy security.selinux; echo "1 1" >container_use_dri; ids; remedy security.selinux'
	expect "warning security.selinux"
	expect "chcon -t dri_device_t on it and sudo setsebool -P container_use_dri 1; or"
	expect_line "per container: --security-opt label=disable"
	# Our module, in a policy and beside it.
	run on wsl-nvidia "wire; $selinux"' mkdir -p /usr/share/ctr-gpu; printf "#!/bin/sh\n" >/usr/share/ctr-gpu/selinux; chmod 755 /usr/share/ctr-gpu/selinux
		remedy security.selinux; echo "1 1" >/run/selinux/booleans/ctr_gpu_containers; ids; remedy security.selinux
		python3 -c "import os; os.setxattr(\"/dev/dxg\", \"security.selinux\", b\"system_u:object_r:dri_device_t:s0\")" && ids | grep "ok security.selinux"'
	expect "sudo /usr/share/ctr-gpu/selinux load; or per container"
	expect "sudo restorecon on it and sudo setsebool -P ctr_gpu_containers 1; or per container"
	expect_line "ok security.selinux"
	# Fedora's own boolean for /dev/dri is on, unlike the one for NVIDIA's nodes.
	run on native-and-dxg "wire; $selinux"' echo "1 1" >/run/selinux/booleans/container_use_dri_devices
		python3 -c "import os; [os.setxattr(\"/dev/\" + node, \"security.selinux\", b\"system_u:object_r:\" + kind + b\":s0\")
			for node, kind in ((\"dxg\", b\"dri_device_t\"), (\"nvidiactl\", b\"xserver_misc_device_t\"))]"
		doctor'
	expect "containers may use /dev/dxg: container_use_dri_devices is on"
	expect "SELinux is enforcing and keeps containers from /dev/nvidiactl (label system_u:object_r:xserver_misc_device_t:s0)"
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
	expect_status 2
	expect "--rootfs: cannot open /none"
	root=$BATS_TEST_TMPDIR/root
	image_copy debian "$root"
	# Of another architecture: AArch64's number in the program's header.
	mkdir -p "$BATS_TEST_TMPDIR/foreign/bin"
	cp -L "$root/bin/sh" "$BATS_TEST_TMPDIR/foreign/bin/sh"
	printf '\xb7\x00' | dd of="$BATS_TEST_TMPDIR/foreign/bin/sh" bs=1 seek=18 conv=notrunc status=none
	run on wsl-nvidia "wire; first --rootfs=$BATS_TEST_TMPDIR/foreign; doctor --rootfs=$BATS_TEST_TMPDIR/foreign"
	expect_line image.architecture
	expect_status 1
	expect "the image is for 64-bit ARM, and the driver's libraries are for x86-64: its programs do not run here"
	run on wsl-nvidia "mkdir /run/formats; echo enabled >/run/formats/qemu-aarch64; mount --bind /run/formats /proc/sys/fs/binfmt_misc; doctor --rootfs=$BATS_TEST_TMPDIR/foreign"
	expect_status 1
	expect "its programs run here, and cannot load them"
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

# opens_no FIFO SCRIPT: to open a device may be to do something; a FIFO tells that it was opened
opens_no() {
	local fifo=$1 opened=$BATS_TEST_TMPDIR/opened writer

	mkfifo "$fifo"
	chmod 755 "$fifo"
	timeout 60 sh -c ': >"$1" && touch "$2"' writer "$fifo" "$opened" 3>&- &
	writer=$!
	run on wsl-nvidia "$2"
	kill "$writer"
	[[ ! -e $opened ]]
}

@test "nothing of an image is opened but files and directories" {
	local root=$BATS_TEST_TMPDIR/root

	mkdir -p "$root/bin" "$root/etc"
	opens_no "$root/bin/sh" "ln $root/bin/sh $root/etc/ld.so.cache; ids --rootfs=$root"
	expect_no_line "problem image.architecture"
}

# As an administrator's sudo reads a user's configuration.
@test "no program of a hook is opened before its type is known" {
	opens_no "$BATS_TEST_TMPDIR/pipe" "hooks_d_file a.json $BATS_TEST_TMPDIR/pipe; ids"
	expect "hooks.broken"
}

@test "an engine's file that cannot be read is said to be so" {
	run on wsl-nvidia 'wire; mkdir -p /etc/docker; echo "{\"runtimes\": {\"nvidia\": {\"path\": \"/run/runtime\"}}}" >/etc/docker/daemon.json; chmod 600 /etc/docker/daemon.json
		nobody ctr-gpu doctor | sed "s/^ *//"; rm /etc/docker/daemon.json; mkdir /etc/docker/daemon.json; echo "as a directory:"; doctor'
	expect "/etc/docker/daemon.json cannot be read: Permission denied"
	expect "sudo ctr-gpu doctor"
	[[ $output == *"as a directory:"*"/etc/docker/daemon.json is not a regular file"* ]]
}

# ---- ourselves ----

@test "our own installation: a configuration that is wrong, a hook of another version, none, a driver process others may change" {
	run on wsl-nvidia 'wire; mkdir -p /etc/ctr-gpu; echo "{\"inventroy\": 1}" >/etc/ctr-gpu/config.json; ids; remedy ctr-gpu.config; doctor || echo fails'
	expect_line "problem ctr-gpu.config"
	expect_line "A GPU container would not work here. First: Correct or remove \"inventroy\" in"
	expect_line "    /etc/ctr-gpu/config.json; ctr-gpu-config(5) has the keys."
	expect "unknown key \"inventroy\"; did you mean 'inventory'?"
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

@test "--report: one new file, with what a bug report needs and no secret" {
	run on wsl-nvidia '
		wire
		mkdir -p /etc/docker /etc/containerd /etc/containers /etc/crio /run/ctr-gpu /run/home/.config/containers; export HOME=/run/home
		echo "{\"runtimes\": {\"nvidia\": {\"path\": \"/run/runtime\", \"runtimeArgs\": [\"--token=SECRET\"]}}, \"features\": {\"cdi\": true}, \"proxies\": {\"http-proxy\": \"http://user:SECRET@proxy\"},
			\"log-opts\": {\"splunk-token\": \"SECRET\", \"path\": \"SECRET\"}, \"registry-mirrors\": [\"https://SECRET@mirror\"]}" >/etc/docker/daemon.json
		printf "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".registry.configs.\"host.SECRET\".auth]\nusername = \"SECRET\"\npassword = \"SECRET\"\n[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.nvidia.options]\nBinaryName = \"/run/runtime\" # SECRET\n" >/etc/containerd/config.toml
		printf "[containers]\nenv = [\"TOKEN=SECRET\"]\n[engine]\nhooks_dir = [\n\"/run/hooks\", # SECRET\n]\n[engine.runtimes]\nnvidia = [\"/run/runtime\"]\n" | tee /run/home/.config/containers/containers.conf >/etc/containers/containers.conf
		printf "[crio.runtime]\ndefault_env = [\"A=SECRET\"]\ndefault_runtime = \"crun\"\n[crio\nSECRET" >/etc/crio/crio.conf
		printf "line one\nline two\n" >/run/ctr-gpu/last-failure
		cd /run/home; export TOKEN=SECRET HTTPS_PROXY=http://a:SECRET@b
		ctr-gpu doctor --report; echo "status $?"; stat -c "%a %h" ctr-gpu-report.txt; cat ctr-gpu-report.txt
		ctr-gpu doctor --report 2>&1 || echo "not again"
		ln -s /run/elsewhere link; ctr-gpu doctor --report=link 2>/dev/null || echo "not through a link"
		mkdir /run/theirs; chown 4711 /run/theirs; cd /run/theirs; ctr-gpu doctor --report 2>&1 || echo "not there"; ls -A /run/theirs | sed "s/^/made: /"
		ctr-gpu doctor --report=named.txt >/dev/null && echo "where it was named"
		echo "{\"a\": SECRET}" >/etc/docker/daemon.json; ctr-gpu doctor --report=-'
	expect_line "status 0"
	expect_line "600 1"
	for text in "==== machine" "==== doctor" "==== inventory" "==== plan" "runtimes/nvidia/path = \"/run/runtime\"" "features/cdi = true" "BinaryName = \"/run/runtime\"" \
		"engine/hooks_dir = [\"/run/hooks\"]" "engine/runtimes/nvidia = [\"/run/runtime\"]" "other settings, left out" "line two" "GPU 0   NVIDIA GeForce RTX 4090" "device      /dev/dxg" \
		"/run/home/.config/containers/containers.conf:" "/etc/docker/daemon.json:1:"; do
		expect "$text"
	done
	expect_line "not again"
	expect_line "not through a link"
	expect_line "not there"
	expect "Have your shell make it: sudo ctr-gpu doctor --report=- >ctr-gpu-report.txt"
	expect_not "made: "
	expect_line "where it was named"
	expect_not SECRET
	# While a driver does not answer there is no half of one.
	run on wsl-dxcore-hangs 'mkdir /run/report; cd /run/report; timeout 60 ctr-gpu --inventory=dxcore --timeout 2 doctor --report &
		until [[ -e ctr-gpu-report.txt ]]; do sleep 0.05; done; sleep 0.5; sed -n "/==== inventory/,$ p" ctr-gpu-report.txt; wait $!'
	expect "did not answer within 2 s"
}

@test "what hangs is left behind, and named" {
	run on wsl-nvidia 'wire; strace -f -qq -o /dev/null -P /etc/subuid -e trace=openat -e inject=openat:delay_enter=12000000 \
		setpriv --reuid 65534 --regid 65534 --clear-groups ctr-gpu --timeout 0.01 doctor -v'
	expect_status 1
	expect "looking at rootless containers did not come to an end"
	expect "GPU 0"
}

@test "a daemon that takes connections and says nothing does not hold it up" {
	run on wsl-nvidia 'wire
		rm /run/docker.sock
		cp "$(command -v perl)" /run/dockerd
		/run/dockerd -e "use Socket; socket S, AF_UNIX, SOCK_STREAM, 0; bind S, sockaddr_un(q(/run/docker.sock)); listen S, 0; sleep 600" &
		soon test -S /run/docker.sock || exit
		timeout 60 ctr-gpu doctor'
	expect_status 1
	expect "does not answer"
}

@test "vCUDA: its manager and its client library, where the configuration wants them" {
	local program=$BATS_TEST_TMPDIR/bin/ctr-gpu

	mkdir "$BATS_TEST_TMPDIR/bin"
	cp "$CTR_GPU_BUILD"/bin/ctr-gpu{,-driverd,-vcudad} "$BATS_TEST_TMPDIR/bin/"
	chmod -R go+rX "$BATS_FILE_TMPDIR"
	export program
	run on wsl-nvidia 'wire; ids'
	expect_not "vcuda."
	run on wsl-nvidia 'wire; mkdir -p /etc/ctr-gpu; PATH=${program%/*}:$PATH
		echo "{\"vcuda\": {\"mode\": \"allow\"}}" >/etc/ctr-gpu/config.json
		ids; remedy vcuda.no-manager
		"${program%/*}/ctr-gpu-vcudad" 2>/dev/null & until ctr-gpu vcuda list >/dev/null 2>&1; do sleep 0.05; done
		mkdir -p "${program%/*}/../lib/vcuda" && touch "${program%/*}/../lib/vcuda/libcuda.so.1"
		echo "with both:"; ids; echo "as nobody:"; nobody ctr-gpu doctor --json | jq -r ".findings[].id"; kill %1'
	expect_line "warning vcuda.no-client"
	expect_line "warning vcuda.no-manager"
	expect "systemctl enable --now ctr-gpu-vcudad"
	[[ $output == *"with both:"*"ok vcuda.manager"*"note vcuda.host-memory"*"vcuda.unknown"* ]]
	output=${output#*with both:}
	[[ ${output%as nobody:*} != *no-client* ]]
	run on wsl-nvidia 'wire; mkdir -p /etc/ctr-gpu; echo "{\"vcuda\": {\"mode\": \"allow\"}}" >/etc/ctr-gpu/config.json
		ids; remedy vcuda.scope; echo "without Landlock:"; remedy vcuda.paths
		strace -f -qq -o /dev/null -e trace=landlock_create_ruleset -e inject=landlock_create_ruleset:error=ENOSYS \
			ctr-gpu doctor --json | jq -r ".findings[] | .severity + \" \" + .id"'
	[[ $output == *"ok vcuda.paths"*"without Landlock:"*"warning vcuda.paths"* ]]
	[[ $output == *"note vcuda.scope"*"CTR_GPU_MODE=device"*"without Landlock:"* ]]
	run on native-old 'wire; mkdir -p /etc/ctr-gpu; echo "{\"vcuda\": {\"mode\": \"force\"}}" >/etc/ctr-gpu/config.json; ids; remedy vcuda.scope'
	expect_line "problem vcuda.no-manager"
	expect 'set vCUDA'"'"'s mode "default" or "allow"'
	expect_not "vcuda.memory"
	run on native-old 'wire; mkdir -p /etc/ctr-gpu /run/module/nvidia_uvm/parameters; mount --bind /run/module /sys/module
		echo "{\"vcuda\": {\"mode\": \"force\"}}" >/etc/ctr-gpu/config.json
		echo N >/run/module/nvidia_uvm/parameters/uvm_disable_hmm; ids
		echo Y >/run/module/nvidia_uvm/parameters/uvm_disable_hmm; echo "switched off:"; ids'
	[[ $output == *"note vcuda.memory"*"switched off:"*"ok vcuda.memory"* ]]
}

@test "a node of Kubernetes: what its engine lacks, then what kubelet lacks" {
	run on wsl-nvidia 'mount -t tmpfs tmpfs /var/lib; words() { ids | grep kubernetes; }
		echo none; words
		mkdir -p /var/lib/kubelet/device-plugins /etc/k0s/containerd.d; echo plain; words
		mkdir -p /var/lib/rancher/k3s/agent/etc/containerd; echo k3s; words; remedy kubernetes.no-runtime
		printf "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.nvidia.options]\nBinaryName = \"/usr/bin/nvidia-container-runtime\"\n" \
			>/var/lib/rancher/k3s/agent/etc/containerd/config.toml; echo k3s with it; words
		mv /var/lib/rancher/k3s /var/lib/rancher/rke2; >/var/lib/rancher/rke2/agent/etc/containerd/config.toml; echo rke2; remedy kubernetes.no-runtime
		rm -r /var/lib/rancher; mkdir /var/lib/k0s; echo k0s; remedy kubernetes.no-runtime
		rmdir /var/lib/k0s; cd /var/lib/kubelet/device-plugins
		perl -e "use Socket; my @s; for (qw(ctr-gpu-nvidia.com_gpu nvidia-gpu)) { socket my \$s, AF_UNIX, SOCK_STREAM, 0; bind \$s, sockaddr_un(qq(\$_.sock)); listen \$s, 5; push @s, \$s } mkdir q(/run/plugins); sleep 600" >/dev/null 2>&1 & plugins=$!
		until [[ -d /run/plugins ]]; do sleep 0.005; done
		echo plugins; words; kill "$plugins"; { wait "$plugins"; } 2>/dev/null; echo killed; words; cd /
		chmod 700 /var/lib/kubelet; echo nobody; nobody ctr-gpu doctor --json | jq -r ".findings[].id" | grep kubernetes'
	[[ $output == "none
plain
ok kubernetes.node
warning kubernetes.no-plugin
k3s
ok kubernetes.node
warning kubernetes.no-runtime
warning kubernetes.no-plugin
Install the package ctr-gpu-nvidia-compat"*"systemctl restart k3s"*"
k3s with it
ok kubernetes.node
warning kubernetes.no-plugin
rke2
Install"*"systemctl restart rke2-server"*"
k0s
sudo ctr-gpu setup kubernetes && sudo k0s stop && sudo k0s start
plugins
ok kubernetes.node
ok kubernetes.plugin
warning kubernetes.two-plugins
killed
ok kubernetes.node
warning kubernetes.no-plugin
nobody"* ]] || { echo "$output"; return 1; }
}
