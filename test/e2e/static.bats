#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016,SC2154
#
# The tarball of static programs: what is in it, that it works wherever it is unpacked, and that it gives a container its GPU
# on a host that has musl, busybox and nothing else.

bats_require_minimum_version 1.5.0
load engines

setup_file() {
	require_root
	require_program runc
	require_program musl-gcc
	# Below a directory of the same name the compiler is told the same as in the checkout, and has made most of it already (test/run).
	mkdir "$BATS_FILE_TMPDIR/tree"
	(cd "$e2e/../.." && pkg/sources | tar --null -T - -cf - | tar -xf - -C "$BATS_FILE_TMPDIR/tree")
	env -u MAKEFLAGS -u MAKELEVEL make -C "$BATS_FILE_TMPDIR/tree" -j2 COMMIT="$("$e2e/../../pkg/version" commit)" static >"$BATS_FILE_TMPDIR/log" 2>&1 ||
		{ cat "$BATS_FILE_TMPDIR/log"; return 1; }
	mv "$BATS_FILE_TMPDIR/tree/build" "$BATS_FILE_TMPDIR/build"
	unpack "$BATS_FILE_TMPDIR/unpacked"
}

setup() {
	unpacked=$BATS_FILE_TMPDIR/unpacked
}

# unpack DIRECTORY: as the note in it says
unpack() {
	mkdir -p "$1"
	tar -xzf "$BATS_FILE_TMPDIR"/build/static/ctr-gpu-*.tar.gz -C "$1" --strip-components=1
}

# runc, and what it needs, in a directory of its own, of whose libraries nobody else knows
carry_runc() {
	local directory=$1 file

	mkdir -p "$directory$2"
	file=$(readlink -f "$(command -v runc)")
	cp "$file" "$directory$2/runc"
	ldd "$file" | sed -n 's,.*=> \(/[^ ]*\) .*,\1,p' | xargs -I{} cp -L {} "$directory$2/"
	cp -L "$(readelf -l "$file" | sed -n 's,.*interpreter: \(.*\)].*,\1,p')" "$directory$2/ld.so"
	patchelf --set-interpreter "$2/ld.so" --set-rpath "$2" "$directory$2/runc"
}

# alpine DIRECTORY: a host with musl's loader and busybox
alpine() {
	local root=$1 program

	mkdir -p "$root"/{bin,sbin,lib,etc,dev,proc,sys,tmp,run,var,root,opt,mnt} "$root"/usr/{bin,sbin,lib,local,lib/wsl}
	cp "$(command -v busybox)" "$root/bin/busybox"
	for program in sh cat cp cut dirname env find grep ls mkdir mount mv readlink rm sed stat tar umount; do
		ln -s busybox "$root/bin/$program"
	done
	cp -L "$(readelf -l "$tools_directory/probe-musl" | sed -n 's,.*interpreter: \(.*\)].*,\1,p')" "$root/lib/ld-musl-$(uname -m).so.1"
	printf 'NAME="Alpine Linux"\nID=alpine\n' >"$root/etc/os-release"
	carry_runc "$root" /opt/runc
}

# on_alpine DIRECTORY OPTIONS SCRIPT [ARGUMENT…]: SCRIPT for busybox's shell, on a simulated WSL2 host whose root is DIRECTORY,
# mounted with OPTIONS
on_alpine() {
	sandbox wsl-nvidia unshare --mount --propagation private -- bash -ec '
		root=$1 options=$2
		shift 2
		mount --bind "$root" "$root"
		cd "$root"
		for directory in dev proc sys run usr/lib/wsl; do
			mount --rbind "/$directory" "$directory"
		done
		mount -o "remount,bind,$options" "$root"
		cd "$root"
		pivot_root . .
		umount -l .
		exec /bin/sh -euc "$@"
	' on_alpine "$@"
}

# alpine_recipe: the recipe's folder as its head says, at $recipe, with the tarball under the name of a release
alpine_recipe() {
	local version name

	recipe=$BATS_TEST_TMPDIR/recipe version=$(sed -n '1s/^ctr-gpu \([0-9.]*\).*/\1/p' "$e2e/../../NEWS")
	name=ctr-gpu-$version-linux-$(uname -m)
	cp -a "$e2e/../../pkg/alpine" "$recipe"
	tar -C "$unpacked" --transform "s,^\.,$name," -czf "$recipe/$name.tar.gz" .
	(cd "$recipe" && printf 'sha512sums="\n%s\n"\n' "$(sha512sum "$name.tar.gz")" >>APKBUILD)
}

@test "Alpine's recipe makes packages of it by abuild's rules, with all that it has, each file once" {
	local pkg path expected

	alpine_recipe
	run busybox sh "$e2e/abuild" "$recipe"
	expect_status 0
	pkg=$recipe/pkg
	[[ ! $(cut -d ' ' -f 2 <<<"$output" | sort | uniq -d) ]]
	expected=$(
		cd "$e2e/../.." && DESTDIR='' build=$BATS_FILE_TMPDIR/build pkg/installed paths static | sed 's,^,/usr/,; /\/man\//s/$/.gz/'
		printf '/usr/share/doc/ctr-gpu/%s\n' ctr-gpu.cdx.json $(cd "$unpacked/share/doc/ctr-gpu" && ls -d licences/*)
		printf '%s\n' /usr/share/containers/oci/hooks.d/ctr-gpu.json /etc/init.d/ctr-gpu-refresh
		sed -n 's,^ctr-gpu-nvidia-compat *| link .*@bindir@/\([^ ]*\) .*,/usr/libexec/ctr-gpu/nvidia-names/\1\n/usr/bin/\1,p' pkg/files
	)
	diff <(sort <<<"$expected") <(cut -d ' ' -f 2 <<<"$output" | sort)
	[[ $(grep -c "^ctr-gpu-nvidia-compat /usr/bin/nvidia-" <<<"$output") -eq 4 && $(<"$pkg/.ctr-gpu-nvidia-compat.depends") == ctr-gpu ]]
	"$pkg/ctr-gpu/usr/bin/ctr-gpu" --version
	for path in "$(jq -r .hook.path "$pkg/ctr-gpu/usr/share/containers/oci/hooks.d/ctr-gpu.json")" \
		"$(sed -n 's,^\t\(/usr/[^ ]*\) refresh.*,\1,p' "$pkg/ctr-gpu-openrc/etc/init.d/ctr-gpu-refresh")" \
		$(cd "$pkg/ctr-gpu-nvidia-compat/usr/bin" && readlink * | sed 's,^,/usr/bin/,'); do
		[[ -x $pkg/ctr-gpu$path ]]
	done
	# What abuild refuses.
	sed -i '/^url=/d' "$recipe/APKBUILD"
	run busybox sh "$e2e/abuild" "$recipe"
	expect_status 1
	expect "missing url"
}

@test "Alpine's package, before it is removed, sets back what it was told to set up" {
	local root=$BATS_TEST_TMPDIR/alpine

	alpine_recipe
	busybox sh "$e2e/abuild" "$recipe" >/dev/null
	alpine "$root"
	cp -a "$recipe/pkg/ctr-gpu/." "$root/"
	cp "$recipe/ctr-gpu.pre-deinstall" "$root/lib/"
	run on_alpine "$root" rw '
		PATH=/usr/bin:/bin:/sbin
		mkdir -p /etc/docker /etc/cdi
		echo "{\"debug\": true}" >/etc/docker/daemon.json
		echo "root:x:0:0:root:/root:/bin/sh" >/etc/passwd
		ctr-gpu --inventory=ioctl setup docker >/dev/null
		grep -c ctr-gpu /etc/docker/daemon.json
		echo "{\"path\": \"/usr/bin/ctr-gpu-hook\"}" >/etc/cdi/ctr-gpu-nvidia.json
		echo "{\"path\": \"/opt/mine\"}" >/etc/cdi/ctr-gpu-mine.json
		sh /lib/ctr-gpu.pre-deinstall
		grep ctr-gpu /etc/docker/daemon.json || echo "set back"
		ls /etc/cdi
		ctr-gpu setup docker >/dev/null
		echo "{" >/etc/docker/daemon.json
		sh /lib/ctr-gpu.pre-deinstall'
	expect_status 0
	expect_line "set back"
	expect_line "ctr-gpu-mine.json"
	expect_no_line "ctr-gpu-nvidia.json"
	expect "mend what is said above"
}

@test "the hook asks the processor nothing, which a virtual machine would be left for" {
	[[ $(objdump -d --no-show-raw-insn "$BATS_FILE_TMPDIR/build/bin/ctr-gpu-hook" | grep -cwE 'cpuid|xgetbv|rdtscp') -eq 0 ]]
	# Where the word would be found.
	[[ $(objdump -d --no-show-raw-insn "$BATS_FILE_TMPDIR/build/bin/ctr-gpu-hook" | grep -cw syscall) -gt 0 ]]
}

@test "what only relocations write is read-only when the hook runs" {
	local hook=$BATS_FILE_TMPDIR/build/bin/ctr-gpu-hook relro base

	relro=$(readelf -lW "$hook" | awk '$1 == "GNU_RELRO" { print $3 }')
	[[ -n $relro ]]
	coproc waits { exec "$hook" createRuntime 2>/dev/null; }
	timeout 60 bash -c 'until [[ $(readlink "/proc/$0/exe") == */ctr-gpu-hook && $(cut -d " " -f 1 "/proc/$0/syscall") == 0 ]]; do sleep 0.01; done' \
		"$waits_PID"
	run -0 awk -v file="$hook" '$6 == file { print $1, $2 }' "/proc/$waits_PID/maps"
	kill "$waits_PID"
	base=${output%%-*}
	grep -E "^$(printf '%x' $(((0x$base + relro) & ~0xfff)))-[0-9a-f]+ r--p$" <<<"$output"
}

# What distributions compile with glibc's headers is linked with hooks/musl, as their libraries are.
@test "functions that know the size of what they write to end the program in time" {
	local directory=$BATS_TEST_TMPDIR musl way
	local -A right=([snprintf]="abc" [sprintf]="abc" [memcpy]="abcdefg" [memmove]="abcdefg" [memset]="" [strcpy]="abcdefg" [strncpy]="abcdefg")

	musl=/usr/lib/$(uname -m)-linux-musl
	cat >"$directory/program.c" <<-'END'
		#include <stdio.h>
		#include <stdlib.h>
		#include <string.h>

		int main(int argc, char **argv)
		{
			char to[8] = "";
			const char *way = argv[1], *from = argc > 3 ? argv[3] : "abcdefg";
			size_t size = strtoul(argv[2], NULL, 10);

			if (strcmp(way, "snprintf") == 0)
				snprintf(to, size, "%.3s", from);
			else if (strcmp(way, "sprintf") == 0)
				sprintf(to, size > 8 ? "%s" : "%.3s", from);
			else if (strcmp(way, "memcpy") == 0)
				memcpy(to, from, size);
			else if (strcmp(way, "memmove") == 0)
				memmove(to, from, size);
			else if (strcmp(way, "memset") == 0)
				memset(to, 0, size);
			else if (strcmp(way, "strcpy") == 0)
				strcpy(to, from);
			else if (strcmp(way, "strncpy") == 0)
				strncpy(to, from, size);
			puts(to);
			return 0;
		}
	END
	"${CC:-cc}" -std=gnu17 -O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fPIE -fno-stack-protector -w -c -o "$directory/program.o" "$directory/program.c"
	"${CC:-cc}" -nostdlib -static-pie -o "$directory/program" "$musl/rcrt1.o" "$musl/crti.o" "$directory/program.o" \
		"$BATS_FILE_TMPDIR/build/musl/hooks/musl/checked.o" "$musl/libc.a" -lgcc "$musl/crtn.o"
	for way in "${!right[@]}"; do
		nm "$directory/program.o" | grep "U __${way}_chk"
		run -0 "$directory/program" "$way" 8
		[[ $output == "${right[$way]}" ]]
		run -134 "$directory/program" "$way" 9 abcdefgh
	done
}

@test "a child that ends itself does not end its parent, and waiting ends when a signal comes" {
	local directory=$BATS_TEST_TMPDIR musl=/usr/lib/$(uname -m)-linux-musl

	cat >"$directory/program.c" <<-'END'
		#define _GNU_SOURCE
		#include <errno.h>
		#include <sched.h>
		#include <signal.h>
		#include <stdio.h>
		#include <stdlib.h>
		#include <sys/syscall.h>
		#include <sys/time.h>
		#include <sys/wait.h>
		#include <unistd.h>

		static void nothing(int number)
		{
			(void)number;
		}

		int main(void)
		{
			const struct itimerval soon = {.it_value = {.tv_usec = 100000}};
			const struct timespec long_time = {20, 0};
			long pid = syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0L, 0L, 0L, 0L);
			sigset_t none;
			int status = 0;

			if (pid == 0)
				abort();
			waitpid((pid_t)pid, &status, 0);
			printf("signal %d\n", WTERMSIG(status));
			signal(SIGALRM, nothing);
			setitimer(ITIMER_REAL, &soon, NULL);
			sigemptyset(&none);
			status = sigtimedwait(&none, NULL, &long_time);
			printf("%d %d\n", status, errno == EINTR);
			return 0;
		}
	END
	"${CC:-cc}" -O2 -fPIE -fno-stack-protector -U_FORTIFY_SOURCE -w -c -o "$directory/program.o" "$directory/program.c"
	"${CC:-cc}" -nostdlib -static-pie -o "$directory/program" "$musl/rcrt1.o" "$musl/crti.o" "$directory/program.o" \
		"$BATS_FILE_TMPDIR"/build/musl/hooks/musl/{compat,checked}.o "$musl/libc.a" -lgcc "$musl/crtn.o"
	run -0 timeout 10 "$directory/program"
	[[ $output == $'signal 6\n-1 1' ]]
}

@test "the programs need no loader and no library, and linking them warned of nothing" {
	local program

	for program in ctr-gpu ctr-gpu-hook; do
		run readelf -lW "$unpacked/bin/$program"
		expect "LOAD"
		expect_not "INTERP"
		run readelf -dW "$unpacked/bin/$program"
		expect "PIE"
		expect_not "NEEDED"
	done
	run cat "$BATS_FILE_TMPDIR/log"
	expect_not "warning"
}

@test "the bill of materials names every archive that is linked, with a version and a licence" {
	local bill=$unpacked/share/doc/ctr-gpu/ctr-gpu.cdx.json

	run jq -r '.bomFormat, .specVersion, (.components[] | select(.type == "library") | .name)' "$bill"
	expect_status 0
	expect_line "CycloneDX"
	expect_line "1.5"
	for name in glibc musl jansson libtirpc; do
		expect_line "$name"
	done
	# Every reference has its component, and every component what its readers look for.
	run jq -r '([.components[], .metadata.component] | map(."bom-ref")) as $known
		| (.dependencies[] | .ref, .dependsOn[]) | select(IN($known[]) | not)' "$bill"
	[[ -z $output ]]
	run jq -r '.components[] | select((.licenses | length) == 0 or (.version // "") == "" or (.name // "") == "") | ."bom-ref"' "$bill"
	[[ -z $output ]]
	run bash -c 'jq -r ".components[].\"bom-ref\"" "$0" | sort | uniq -d' "$bill"
	[[ -z $output ]]
	[[ $(jq -r .metadata.component.version "$bill") == "$(sed -n '1s/^ctr-gpu \([0-9.]*\).*/\1/p' "$e2e/../../NEWS")" ]]
}

@test "an archive that nobody knows stops the bill of materials" {
	printf 'Archive member included to satisfy reference by file (symbol)\n\n%s/libunheardof.a(x.o)\n  main.o (x)\n\nMemory Configuration\n' \
		"$BATS_TEST_TMPDIR" >"$BATS_TEST_TMPDIR/program.map"
	touch "$BATS_TEST_TMPDIR/libunheardof.a"
	run "$e2e/../../pkg/sbom" 1.0 "$BATS_TEST_TMPDIR/program.map"
	expect_status 1
	expect "libunheardof.a"
}

@test "what registers the hook knows where it lies" {
	local prefix=$BATS_TEST_TMPDIR/any/prefix

	unpack "$prefix"
	"$prefix/share/ctr-gpu/register" "$BATS_TEST_TMPDIR/hooks.d"
	run jq -r .hook.path "$BATS_TEST_TMPDIR/hooks.d/ctr-gpu.json"
	[[ $output == "$prefix/bin/ctr-gpu-hook" && -x $output ]]
	"$prefix/bin/ctr-gpu" setup docker --engine-config="$BATS_TEST_TMPDIR/daemon.json" >/dev/null
	[[ $(jq -r .runtimes.nvidia.path "$BATS_TEST_TMPDIR/daemon.json") == "$prefix/bin/ctr-gpu-runtime" ]]
	"$prefix/share/ctr-gpu/register" --remove "$BATS_TEST_TMPDIR/hooks.d"
	[[ ! -e $BATS_TEST_TMPDIR/daemon.json ]]
	run ls -A "$BATS_TEST_TMPDIR/hooks.d"
	[[ -z $output ]]
	[[ $(readlink -f "$prefix/libexec/ctr-gpu/nvidia-names/nvidia-container-runtime-hook") == "$prefix/bin/ctr-gpu-hook" ]]
}

@test "a host of musl and busybox: its GPU, and a container that has it" {
	local root=$BATS_TEST_TMPDIR/alpine

	alpine "$root"
	unpack "$root/usr/local"
	bundle musl "$root/var/bundle" '.hooks.prestart[0].path = "/usr/local/bin/ctr-gpu-hook"'
	run on_alpine "$root" rw '
		PATH=/usr/local/bin:/usr/bin:/bin:/sbin
		find / -xdev -name "libc.so.6" ! -path "/opt/runc/*" ! -path "/var/bundle/*"
		[ -z "$(ls /lib64 /lib/*-linux-gnu 2>/dev/null)" ]
		ctr-gpu --inventory=ioctl info | grep "^GPU"
		cd /var/bundle
		sed -i "s,\"linux\": {,\"linux\": {\"cgroupsPath\": \"$CTR_GPU_TEST_CGROUP/container\"\,," config.json
		exec /opt/runc/runc --root /run/runtime run container'
	expect_status 0
	expect_line "GPU 0   NVIDIA GeForce RTX 4090"
	expect_line "/dev/dxg=ok"
	expect_line "cuInit=0"
	expect_line "device=NVIDIA GeForce RTX 4090"
	expect_not "libc.so.6"
}

@test "a host whose files cannot be written: from a directory that can" {
	local root=$BATS_TEST_TMPDIR/alpine

	alpine "$root"
	mkdir "$root/opt/ctr-gpu"
	bundle musl "$BATS_TEST_TMPDIR/bundle" '.hooks.prestart[0].path = "/run/ctr-gpu/bin/ctr-gpu-hook"'
	cp -a "$BATS_TEST_TMPDIR/bundle" "$root/mnt/bundle"
	cp "$BATS_FILE_TMPDIR"/build/static/ctr-gpu-*.tar.gz "$root/opt/ctr-gpu.tar.gz"
	run on_alpine "$root" ro '
		PATH=/usr/bin:/bin:/sbin
		if mkdir /usr/local/bin 2>/dev/null; then false; fi
		mkdir /run/ctr-gpu
		tar -xzf /opt/ctr-gpu.tar.gz -C /run/ctr-gpu --strip-components=1
		cp -a /mnt/bundle /run/bundle
		cd /run/bundle
		sed -i "s,\"linux\": {,\"linux\": {\"cgroupsPath\": \"$CTR_GPU_TEST_CGROUP/container\"\,," config.json
		exec /opt/runc/runc --root /run/runtime run container'
	expect_status 0
	expect_line "/dev/dxg=ok"
	expect_line "cuInit=0"
}
