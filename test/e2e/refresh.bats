#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2016,SC2154
#
# ctr-gpu refresh, and what calls it: the units with the real systemd as the first process of namespaces of its own.
# OpenRC's script and udev's rules are tested in ../engines.

load engines

directory=$BATS_FILE_TMPDIR/systemd
units=$e2e/../../pkg/systemd

setup_file() {
	require_root
	mkdir -p "$directory"
	"$e2e/systemd-world" start "$directory" 2
	# What `make install` puts where, and a directory for what tests say.
	inside bash -ec 'cp "$0"/bin/ctr-gpu "$0"/bin/ctr-gpu-hook "$0"/bin/ctr-gpu-driverd /usr/bin; cp -a "$0"/lib/*.so* /usr/lib
		cp "$1"/ctr-gpu-refresh.* /usr/lib/systemd/system; mkdir /run/work; cp "$0"/test/hosts/files/dxcore-present/* /run/work; rm -rf /etc/cdi /etc/ctr-gpu
		# What nothing refers to is forgotten when it ends, and how it ended.
		mkdir /run/systemd/system/ctr-gpu-refresh.service.d /run/systemd/system/ctr-gpu-test.target.wants
		ln -s /usr/lib/systemd/system/ctr-gpu-refresh.service /run/systemd/system/ctr-gpu-test.target.wants
		printf "[Service]\nStandardOutput=append:/run/work/output\nStandardError=append:/run/work/output\n" >/run/systemd/system/ctr-gpu-refresh.service.d/output.conf
		mkdir -p /etc/systemd; systemctl daemon-reload' "$CTR_GPU_BUILD" "$units"
}

teardown_file() {
	"$e2e/systemd-world" stop "$directory"
}

inside() {
	"$e2e/systemd-world" run "$directory" "$@" 3>&-
}

# on PROFILE SCRIPT: on a simulated host
on() {
	sandbox "$1" bash -c "rm -rf /etc/ctr-gpu /etc/cdi; $2"
}

# The service, from the beginning to the end; prints its result and what it said.
refresh() {
	inside sh -c ': >/run/work/output; systemctl reset-failed ctr-gpu-refresh.service 2>/dev/null; systemctl start ctr-gpu-refresh.service
		systemctl show -p Result,ConditionResult,ExecMainStatus ctr-gpu-refresh.service; cat /run/work/output'
}

# A host with NVIDIA's module, as /proc and a modprobe say; modules that are in the file /run/work/unloaded are not loaded yet.
nvidia_host() {
	inside bash -ec '
		mkdir -p /run/work/driver/nvidia/gpus/0000:01:00.0 /run/work/driver/nvidia/capabilities
		echo "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Tue" >/run/work/driver/nvidia/version
		printf "ModifyDeviceFiles: 1\nDeviceFileUID: 0\nDeviceFileGID: 0\nDeviceFileMode: 438\n" >/run/work/driver/nvidia/params
		printf "Model: NVIDIA H200\nDevice Minor: 0\nGPU Excluded: No\n" >/run/work/driver/nvidia/gpus/0000:01:00.0/information
		grep -v nvidia /proc/devices | sed "s/^Character devices:/&\n195 nvidia\n508 nvidia-uvm/" >/run/work/devices
		# A service that is shut off has a /proc of its own.
		printf "[Service]\nBindPaths=/run/work/devices:/proc/devices /run/work/driver:/proc/driver\n" >/run/systemd/system/ctr-gpu-refresh.service.d/nvidia.conf
		systemctl daemon-reload'
}

@test "systemd has nothing against the units, and they are shut off from what they do not need" {
	run inside systemd-analyze verify --man=no /usr/lib/systemd/system/ctr-gpu-refresh.service /usr/lib/systemd/system/ctr-gpu-refresh.path
	expect_status 0
	[[ -z $output ]]
	run inside systemd-analyze security --offline=true --threshold=40 /usr/lib/systemd/system/ctr-gpu-refresh.service
	expect_status 0
}

@test "in a container, whose /sys is read-only, the service is not even run" {
	run refresh
	expect_line "Result=success"
	expect_line "ConditionResult=no"
	# From here on the world is a machine.
	inside mount -o remount,bind,rw /sys
}

@test "on a machine without a GPU the service succeeds and says nothing" {
	run refresh
	expect_line "Result=success"
	expect_line "ConditionResult=yes"
	expect_line "ExecMainStatus=0"
	[[ ${#lines[@]} -eq 3 ]]
	run inside systemctl is-failed ctr-gpu-refresh.service
	expect_line inactive
}

@test "the service makes the nodes of a host with an NVIDIA GPU, shut off as it is" {
	nvidia_host
	run refresh
	expect_line "Result=success"
	run inside stat -c '%n %a %t:%T' /dev/nvidia0 /dev/nvidiactl /dev/nvidia-uvm
	expect_line "/dev/nvidia0 666 c3:0"
	expect_line "/dev/nvidiactl 666 c3:ff"
	expect_line "/dev/nvidia-uvm 666 1fc:0"
	# Once more there is nothing to do.
	inside sh -c 'stat -c "%n %Z" /dev/nvidia* >/run/work/before'
	run refresh
	expect_line "Result=success"
	run inside sh -c 'stat -c "%n %Z" /dev/nvidia* | diff /run/work/before -'
	expect_status 0
}

@test "the service waits for a driver that is not ready, and not for ever" {
	nvidia_host
	inside sh -c 'rm -rf /etc/cdi; mknod -m 666 /dev/nvidiactl c 195 255 2>/dev/null; mv /run/work/driver/nvidia/version /run/work/version'
	run inside bash -c ': >/run/work/output; systemctl start --no-block ctr-gpu-refresh.service; sleep 1.5; systemctl show -p ActiveState ctr-gpu-refresh.service; ls /etc/cdi
		mv /run/work/version /run/work/driver/nvidia/version; systemctl start ctr-gpu-refresh.service; ls /etc/cdi; cat /run/work/output'
	expect_status 0
	expect_line "ActiveState=activating"
	[[ ${lines[1]} == *"No such file"* || $output == *$'activating\nctr-gpu-nvidia.json'* ]]
	expect_line ctr-gpu-nvidia.json
	expect_not "E_NO_ADAPTER"
	# A store that is mounted late; one that is not; and no wait where nothing is missing.
	run on hyperv-stale-store 'store=/usr/lib/wsl/drivers/nv_dispsi.inf_amd64_0d8a1ba1d2a6c1f7
		(sleep 1; mkdir "$store.new"; cp /usr/lib/wsl/lib/libcuda.so* "$store.new"; mv "$store.new" "$store") & ctr-gpu refresh --wait=60; echo "status $?"; ls /etc/cdi'
	expect_line "status 0"
	expect_line ctr-gpu-nvidia.json
	run on hyperv-stale-store 'SECONDS=0; ctr-gpu refresh --wait=2; echo "$((SECONDS >= 2 && SECONDS < 40))"; ls /etc/cdi'
	expect_line 1
	expect_no_line ctr-gpu-nvidia.json
	for profile in plain wsl-nvidia wsl-hybrid wsl-gpu-off wsl-old-driver native-nvidia native-halfway native-amd; do
		run on "$profile" 'timeout 60 ctr-gpu refresh --wait=600'
		expect_status 0
	done
	run on plain 'ctr-gpu refresh --wait=soon'
	expect_status 2
}

@test "the service writes specs, where /etc is read-only to /run/cdi" {
	local specs='ls -d /etc/cdi/* /run/cdi/* 2>/dev/null || true'

	nvidia_host
	inside rm -rf /etc/cdi /run/cdi
	run refresh
	expect_line "Result=success"
	[[ $(inside sh -c "$specs") == /etc/cdi/ctr-gpu-nvidia.json ]]
	inside sh -c 'rm -rf /etc/cdi /run/cdi; mount --bind /etc /etc; mount -o remount,bind,ro /etc'
	run refresh
	inside umount /etc
	expect_line "Result=success"
	[[ $(inside sh -c "$specs") == /run/cdi/ctr-gpu-nvidia.json ]]
}

@test "what was known of a driver is forgotten" {
	nvidia_host
	inside sh -c 'mkdir -p -m 700 /run/ctr-gpu; echo old >/run/ctr-gpu/nvidia'
	run refresh
	expect_line "Result=success"
	expect_line "ConditionResult=yes"
	run inside sh -c 'cat /run/ctr-gpu/nvidia 2>&1; rm -rf /run/ctr-gpu /run/systemd/system/ctr-gpu-refresh.service.d/nvidia.conf; rm -f /dev/nvidia*; systemctl daemon-reload'
	expect_not old
}

@test "it may load modules: the kernel, and not systemd, refuses one that is none" {
	nvidia_host
	inside bash -ec 'grep -v uvm /run/work/devices >/run/work/fewer; cat /run/work/fewer >/run/work/devices; rm -f /dev/nvidia-uvm
		cat >/usr/sbin/modprobe <<END
#!/usr/bin/perl
# init_module(2): 175 on x86-64, 105 on arm64
use POSIX ();
my (\$image, \$arguments) = ("none", "");
syscall((POSIX::uname())[4] eq "aarch64" ? 105 : 175, \$image, 4, \$arguments);
print STDERR "init_module: \$!\n";
exit 1;
END
		chmod 755 /usr/sbin/modprobe'
	run refresh
	inside sh -c 'rm /usr/sbin/modprobe /run/systemd/system/ctr-gpu-refresh.service.d/nvidia.conf /dev/nvidia*; systemctl daemon-reload; systemctl reset-failed'
	expect_line "Result=exit-code"
	# A kernel without modules has no such call; the unit's filter would have said "Operation not permitted".
	[[ $output == *"init_module: Exec format error"* ]] || expect "init_module: Function not implemented"
}

@test "the process for the driver's libraries works under the unit's restrictions" {
	inside bash -ec 'mknod -m 666 /dev/dxg c 10 183; mkdir -p /usr/lib/wsl/lib; cp /run/work/libdxcore.so /usr/lib/wsl/lib
		mkdir -p /run/systemd/system/ctr-gpu-refresh.service.d; printf "[Service]\nExecStart=\nExecStart=/usr/bin/ctr-gpu --inventory=dxcore info\n" >/run/systemd/system/ctr-gpu-refresh.service.d/info.conf
		systemctl daemon-reload'
	run refresh
	inside sh -c 'rm -r /dev/dxg /run/systemd/system/ctr-gpu-refresh.service.d/info.conf; systemctl daemon-reload'
	# The library was loaded and asked the device, which is another in truth.
	expect "D3DKMTEnumAdapters"
	expect_not "cannot start"
	expect_not "did not answer"
}

@test "a driver that is installed, and settings that change, start the service" {
	inside bash -ec 'mkdir -p /lib/modules/$(uname -r) /etc/ctr-gpu; touch /lib/modules/$(uname -r)/modules.dep.bin; systemctl start ctr-gpu-refresh.path'
	for file in '/lib/modules/$(uname -r)/modules.dep.bin' /etc/ctr-gpu/config.json; do
		inside bash -c ': >/run/work/output; date +%s%N >/run/work/started; cat >/run/systemd/system/ctr-gpu-refresh.service.d/ran.conf <<<"[Service]
ExecStartPost=/usr/bin/touch /dev/shm/ran"; systemctl daemon-reload; rm -f /dev/shm/ran; echo "{}" >'"$file"
		run inside bash -c 'for _ in {1..1200}; do [[ -e /dev/shm/ran ]] && echo ran && break; sleep 0.05; done'
		expect_line ran
	done
	inside systemctl stop ctr-gpu-refresh.path
}

@test "without any of them: on every kind of host, twice" {
	for profile in plain wsl-hybrid wsl-no-adapter native-mig native-and-dxg; do
		run on "$profile" 'ctr-gpu refresh && stat -c "%n %i %Z" /etc/cdi/* 2>/dev/null >/run/before; sleep 1.1; ctr-gpu refresh && stat -c "%n %i %Z" /etc/cdi/* 2>/dev/null | diff /run/before -'
		expect_status 0
		[[ -z $output ]]
	done
	run on native-nvidia 'rm /dev/nvidia0; setpriv --reuid 65534 --regid 65534 --clear-groups ctr-gpu refresh'
	expect_status 1
	expect "[E_NO_PERMISSION]"
}

@test "specs: written where they are missing, as cdi generate writes them" {
	run on wsl-hybrid 'ctr-gpu refresh; ls /etc/cdi; ctr-gpu cdi check >/dev/null && echo fine; mv /etc/cdi /etc/cdi.1; ctr-gpu cdi generate >/dev/null; diff -r /etc/cdi /etc/cdi.1 && echo same'
	expect_line ctr-gpu-nvidia.json
	expect_line ctr-gpu-intel.json
	expect_line fine
	expect_line same
}

@test "specs: written also where the guard cannot be loaded, which is said" {
	run on wsl-hybrid 'mkdir -p /etc/ctr-gpu; echo "{\"choice\": \"strict\"}" >/etc/ctr-gpu/config.json; ctr-gpu refresh; echo "status $?"; ls /etc/cdi'
	expect_line "status 1"
	expect "[E_GUARD] this kernel or driver cannot be guarded: "
	expect_not "?"
	[[ ${lines[1]} == *" lists all of it; see docs/guard.md "* ]]
	expect_line ctr-gpu-nvidia.json
	expect_line ctr-gpu-intel.json
	run on wsl-hybrid 'printf "#!/bin/sh\necho ctr-gpu-guard: error while loading shared libraries: libbpf.so.1 >&2; exit 127\n" >/run/guard; chmod 755 /run/guard
		mount --bind /run/guard "$(command -v ctr-gpu-guard)"; mkdir -p /etc/ctr-gpu; echo "{\"choice\": \"guard\"}" >/etc/ctr-gpu/config.json; ctr-gpu refresh'
	expect_status 1
	expect "[E_GUARD] ctr-gpu-guard, which loads the guard, does not run: ctr-gpu-guard: error while loading shared libraries: libbpf.so.1"
}

read_only='mount --bind /etc /etc; mount -o remount,bind,ro /etc;'

@test "specs: where /etc is read-only they are in /var/run/cdi, and what reads specs knows" {
	run on wsl-hybrid "$read_only"' rm -rf /run/cdi; ctr-gpu refresh; ls /run/cdi; ctr-gpu cdi list; stat -c "%n %i %Z" /run/cdi/* >/run/before; ctr-gpu refresh; stat -c "%n %i %Z" /run/cdi/* | diff /run/before - && echo once'
	expect_status 0
	expect_line ctr-gpu-nvidia.json
	expect_line ctr-gpu-intel.json
	expect "nvidia.com/gpu=0"
	expect "/var/run/cdi/ctr-gpu-nvidia.json"
	expect_line once
	run on wsl-nvidia "$read_only"' rm -rf /run/cdi; ctr-gpu cdi generate && ctr-gpu cdi check; ctr-gpu doctor --json | jq -r ".. | strings" | grep cdi'
	expect "nvidia.com/gpu: /var/run/cdi/ctr-gpu-nvidia.json, until the next boot, since /etc is read-only"
	expect "/var/run/cdi"
	expect_not "E_"
	# A directory of its own that can be written is as good as ever; a directory that was asked for is that and no other.
	run on wsl-nvidia 'mkdir /etc/cdi;'"$read_only"' mount -t tmpfs specs /etc/cdi; ctr-gpu refresh; ls /etc/cdi'
	expect_line ctr-gpu-nvidia.json
	run on wsl-nvidia "$read_only"' ctr-gpu cdi generate --output=/etc/cdi/; ls /run/cdi'
	expect "cannot write /etc/cdi/ctr-gpu-nvidia.json, which stays as it was: Read-only file system"
	# What is superfluous goes here, too.
	run on wsl-nvidia "$read_only"' ctr-gpu refresh; rm -f /dev/dxg; umount /dev/dxg 2>/dev/null; ctr-gpu refresh; ls -A /run/cdi'
	expect_status 0
	[[ -z $output ]]
}

@test "specs: stale ones anew as they were chosen, superfluous ones gone, others' left alone" {
	run on wsl-nvidia '
		ctr-gpu cdi generate --no-hooks --capabilities=compute >/dev/null
		jq -S . /etc/cdi/ctr-gpu-nvidia.json >/run/chosen
		sed -i "s,nv_dispi[a-z0-9_.]*,nv_dispi.inf_amd64_before," /etc/cdi/ctr-gpu-nvidia.json
		ctr-gpu cdi check >/dev/null && echo not stale
		ctr-gpu refresh; jq -S . /etc/cdi/ctr-gpu-nvidia.json | diff /run/chosen - && echo as chosen'
	expect_line "as chosen"
	expect_no_line "not stale"
	run on wsl-nvidia 'ctr-gpu cdi generate >/dev/null; jq -c . /etc/cdi/ctr-gpu-nvidia.json >/run/before; cp /run/before /etc/cdi/ctr-gpu-nvidia.json; ctr-gpu refresh; cmp /run/before /etc/cdi/ctr-gpu-nvidia.json && echo left'
	expect_line left
	run on wsl-nvidia 'ctr-gpu refresh; rm -f /dev/dxg; umount /dev/dxg 2>/dev/null; ctr-gpu refresh; ls -A /etc/cdi'
	expect_status 0
	[[ -z $output ]]
	# Of a file that was cut off nothing can be read, and it is no other program's.
	run on wsl-nvidia 'ctr-gpu refresh && cp /etc/cdi/ctr-gpu-nvidia.json /run/whole
		for size in 0 100; do truncate --size=$size /etc/cdi/ctr-gpu-nvidia.json; ctr-gpu refresh && cmp /run/whole /etc/cdi/ctr-gpu-nvidia.json || exit; done
		echo whole again'
	expect_line "whole again"
	run on wsl-nvidia 'mkdir /etc/cdi; echo "{\"cdiVersion\": \"0.3.0\", \"kind\": \"nvidia.com/gpu\", \"devices\": []}" | tee /etc/cdi/ctr-gpu-nvidia.json /etc/cdi/other.json >/run/before; ctr-gpu refresh; cmp /run/before /etc/cdi/ctr-gpu-nvidia.json && cmp /run/before /etc/cdi/other.json && echo left'
	expect_line left
}
