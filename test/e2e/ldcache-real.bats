#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
#
# Loader caches that real ldconfigs wrote, merged by us, and judged by real loaders: this machine's and, where a mirror can
# be reached, those of other Debian releases. The roots have libraries in unusual directories only, so that nothing is found
# without the cache; the image has a libcuda.so.1 and a libLLVM.so.15 of its own.
#
# The format with the old one in front ("compat") was glibc's default before 2.32. Debian made the new one the default in its
# 2.31 already, and mirrors no longer have an older release; so bullseye's ldconfig is told to write it, and its loader (2.31,
# from before the search was rewritten in 2.33) reads what becomes of it.

bats_require_minimum_version 1.5.0
: "${CTR_GPU_BUILD:?the directory that make builds in}"

wsl=/usr/lib/wsl/lib
intel=/usr/lib/wsl/drivers/iigd_dch.inf_amd64_0123456789abcdef
multiarch=$(gcc -print-multiarch)
case $(uname -m) in
x86_64) loader=/lib64/ld-linux-x86-64.so.2 ;;
aarch64) loader=/lib/ld-linux-aarch64.so.1 ;;
esac

setup_file() {
	export parts=$BATS_FILE_TMPDIR/parts
	mkdir -p "$parts"
	for name in libcuda.so.1 libdxcore.so libnew.so.1 libigc.so.2 libLLVM.so.15 libfast.so.1 libplain.so.9 libplain.so.10; do
		echo 'int where;' | gcc -x c -shared -nostdlib -fPIC -Wl,-soname,$name -o "$parts/$name" -
	done
	# A program that needs one of them, for the loader to list. It stops at the first that it does not find.
	for name in libcuda.so.1 libdxcore.so libigc.so.2 libLLVM.so.15 libfast.so.1 libplain.so.9 libplain.so.10; do
		echo 'int needs;' | gcc -x c -shared -nostdlib -fPIC -Wl,--no-as-needed -o "$parts/needs-$name" - -x none "$parts/$name"
	done
}

# The image's libraries and the driver's, into a root that has a loader.
populate() {
	local root=$1

	mkdir -p "$root"/opt/image/glibc-hwcaps/x86-64-v{2,3} "$root"/etc/ld.so.conf.d "$root$wsl" "$root$intel" "$root/test"
	cp "$parts"/lib{cuda.so.1,LLVM.so.15,fast.so.1,plain.so.9,plain.so.10} "$root/opt/image"
	cp "$parts/libfast.so.1" "$root/opt/image/glibc-hwcaps/x86-64-v2"
	cp "$parts/libfast.so.1" "$root/opt/image/glibc-hwcaps/x86-64-v3"
	cp "$parts"/lib{cuda.so.1,dxcore.so} "$root$wsl"
	cp "$parts"/lib{igc.so.2,LLVM.so.15} "$root$intel"
	cp "$parts"/needs-* "$CTR_GPU_BUILD/test/tools/dlopen-where" "$root/test"
	echo 'include /etc/ld.so.conf.d/*.conf' >"$root/etc/ld.so.conf"
	echo /opt/image >"$root/etc/ld.so.conf.d/image.conf"
}

# A root with this machine's loader, C library and ldconfig.
make_root() {
	root=$BATS_TEST_TMPDIR/root
	mkdir -p "$root"/sbin "$root${loader%/*}" "$root/lib/$multiarch"
	cp -L /sbin/ldconfig "$root/sbin"
	cp -L "$loader" "$root$loader"
	cp -L "/lib/$multiarch/libc.so.6" "$root/lib/$multiarch"
	populate "$root"
}

merge() {
	"$CTR_GPU_BUILD/test/tools/ldcache-merge" "$root" "$wsl" -n "$intel"
}

# found NAME PATH: where the root's own loader finds a library.
found() {
	local got

	got=$(chroot "$root" "$loader" --list "/test/needs-$1" 2>/dev/null | sed -n "s|^\t$1 => \(.*\) (0x.*|\1|p")
	[ "$got" = "$2" ] || {
		echo "$1: expected $2, the loader found ${got:-nothing}"
		return 1
	}
}

# The best of the image's copies for this processor, as the loader says it itself; glibc before 2.33 has no such directories.
fast_path() {
	local level

	for level in 3 2; do
		if chroot "$root" "$loader" --help 2>/dev/null | grep -q "x86-64-v$level (supported, searched)"; then
			echo "/opt/image/glibc-hwcaps/x86-64-v$level/libfast.so.1"
			return
		fi
	done
	echo /opt/image/libfast.so.1
}

all_found() {
	found libcuda.so.1 $wsl/libcuda.so.1
	found libdxcore.so $wsl/libdxcore.so
	found libigc.so.2 $intel/libigc.so.2
	found libLLVM.so.15 /opt/image/libLLVM.so.15
	found libplain.so.9 /opt/image/libplain.so.9
	found libplain.so.10 /opt/image/libplain.so.10
}

# The image's ldconfig reads what we wrote, sees each of ours once, and of the image's copy nothing.
listed() {
	local list

	list=$(chroot "$root" "$(ldconfig_of)" -p)
	[ "$(grep -c "libcuda.so.1 .* => " <<<"$list")" -eq 1 ]
	grep -q "libcuda.so.1 (libc6,.*) => $wsl/libcuda.so.1\$" <<<"$list"
	grep -q "libLLVM.so.15 (libc6,.*) => /opt/image/libLLVM.so.15\$" <<<"$list"
}

ldconfig_of() {
	if [ -e "$root/sbin/ldconfig" ]; then echo /sbin/ldconfig; else echo /usr/sbin/ldconfig; fi
}

@test "without the merge the loader finds the image's own libcuda" {
	make_root
	chroot "$root" /sbin/ldconfig
	found libcuda.so.1 /opt/image/libcuda.so.1
	run -1 found libcuda.so.1 $wsl/libcuda.so.1
	found libdxcore.so ''
}

for_format() {
	make_root
	ldconfig -r "$root" -c "$1"
	merge
	all_found
	listed
}

@test "cache in the new format" {
	for_format new
	found libfast.so.1 "$(fast_path)"
}

@test "cache in the old format with the new one behind it" {
	for_format compat
	found libfast.so.1 "$(fast_path)"
}

@test "cache in the old format alone" {
	for_format old
}

@test "no cache at all" {
	make_root
	[ ! -e "$root/etc/ld.so.cache" ]
	merge
	found libcuda.so.1 $wsl/libcuda.so.1
	found libdxcore.so $wsl/libdxcore.so
	found libLLVM.so.15 $intel/libLLVM.so.15
}

@test "the loader tries our file first and nothing else" {
	make_root
	chroot "$root" /sbin/ldconfig
	merge
	run -0 chroot "$root" "$loader" --list /test/needs-libcuda.so.1
	tried=$(LD_DEBUG=libs chroot "$root" "$loader" --list /test/needs-libcuda.so.1 2>&1 | grep -o 'trying file=.*libcuda.*')
	[ "$tried" = "trying file=$wsl/libcuda.so.1" ]
}

@test "a program that calls dlopen" {
	make_root
	chroot "$root" /sbin/ldconfig
	merge
	run -0 chroot "$root" /test/dlopen-where libcuda.so.1 libdxcore.so libigc.so.2 libLLVM.so.15 libfast.so.1
	[ "${lines[0]}" = "libcuda.so.1 => $wsl/libcuda.so.1" ]
	[ "${lines[1]}" = "libdxcore.so => $wsl/libdxcore.so" ]
	[ "${lines[2]}" = "libigc.so.2 => $intel/libigc.so.2" ]
	[ "${lines[3]}" = "libLLVM.so.15 => /opt/image/libLLVM.so.15" ]
	[ "${lines[4]}" = "libfast.so.1 => $(fast_path)" ]
}

@test "names of glibc-hwcaps directories are still names" {
	make_root
	chroot "$root" /sbin/ldconfig
	merge
	chroot "$root" /sbin/ldconfig -p | grep -q 'libfast.so.1 (.*hwcap: "x86-64-v3")'
	chroot "$root" /sbin/ldconfig -p | grep -q '^Cache generated by: ldconfig'
}

@test "a second start writes nothing" {
	make_root
	chroot "$root" /sbin/ldconfig
	run -0 merge
	[ "${#lines[@]}" -eq 3 ]
	sum=$(sha256sum "$root/etc/ld.so.cache")
	run -0 merge
	[ "$output" = "" ]
	[ "$sum" = "$(sha256sum "$root/etc/ld.so.cache")" ]
}

@test "an ldconfig run in the container keeps the driver ahead" {
	make_root
	chroot "$root" /sbin/ldconfig
	merge
	chroot "$root" /sbin/ldconfig
	all_found
	merge
	all_found
	listed
}

@test "nothing stays of a driver that is gone" {
	make_root
	chroot "$root" /sbin/ldconfig
	cp "$root/etc/ld.so.cache" "$BATS_TEST_TMPDIR/before"
	merge
	rm "$root$wsl/libcuda.so.1"
	cp "$parts/libnew.so.1" "$root$wsl"
	rm -r "${root:?}$intel"
	"$CTR_GPU_BUILD/test/tools/ldcache-merge" "$root" $wsl
	found libcuda.so.1 /opt/image/libcuda.so.1
	found libigc.so.2 ''
	run ! grep -q iigd "$root/etc/ld.so.cache"
	chroot "$root" /sbin/ldconfig -p | grep -q "libnew.so.1 (.*) => $wsl/libnew.so.1"
}

@test "nothing stays of a driver that is gone, after an ldconfig run in the container" {
	make_root
	chroot "$root" /sbin/ldconfig
	merge
	chroot "$root" /sbin/ldconfig
	rm "$root$wsl/libcuda.so.1"
	cp "$parts/libnew.so.1" "$root$wsl"
	rm -r "${root:?}$intel"
	"$CTR_GPU_BUILD/test/tools/ldcache-merge" "$root" $wsl
	found libcuda.so.1 /opt/image/libcuda.so.1
	found libigc.so.2 ''
	run ! bash -c "chroot '$root' /sbin/ldconfig -p | grep iigd"
}

@test "the image's own cache comes back when no driver is left" {
	make_root
	chroot "$root" /sbin/ldconfig
	chroot "$root" /sbin/ldconfig -p >"$BATS_TEST_TMPDIR/before"
	merge
	"$CTR_GPU_BUILD/test/tools/ldcache-merge" "$root"
	chroot "$root" /sbin/ldconfig -p | diff "$BATS_TEST_TMPDIR/before" -
}

# ---- other releases' loaders ----

# Where this machine gets its own Debian packages from.
mirror() {
	# shellcheck disable=SC2016
	apt-get indextargets --format '$(ORIGIN) $(LABEL) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
		sed -n 's/^Debian Debian main //p' | head -n 1
}

# The C library of a Debian release, unpacked once per build directory. Fails where there is no mirror.
fetch_release() {
	local suite=$1 directory=$CTR_GPU_BUILD/test/releases/$1 work=$BATS_TEST_TMPDIR/apt options mirror

	[ ! -e "$directory/done" ] || return 0
	mirror=${CTR_GPU_TEST_MIRROR:-$(mirror)}
	[ -n "$mirror" ] || return 1
	rm -rf "$directory"
	mkdir -p "$directory/root" "$work"/{lists/partial,cache/archives/partial}
	: >"$work/status"
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$work/sources.list"
	options=(-qq -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$work/lists"
		-o Dir::State::status="$work/status" -o Dir::Cache="$work/cache" -o Acquire::Languages=none -o Acquire::Retries=0
		-o APT::Sandbox::User=root -o Acquire::http::Timeout=15 -o APT::Update::Error-Mode=any)
	timeout 120 apt-get "${options[@]}" update || return 1
	(cd "$work" && timeout 120 apt-get "${options[@]}" download libc6 libc-bin) || return 1
	for package in "$work"/*.deb; do
		dpkg-deb -x "$package" "$directory/root" || return 1
	done
	for name in lib lib64 sbin bin; do
		[ -e "$directory/root/$name" ] || ln -s "usr/$name" "$directory/root/$name"
	done
	touch "$directory/done"
}

release() {
	command -v apt-get >/dev/null || skip "no apt-get to fetch the C library of $1 with"
	fetch_release "$1" || skip "no mirror that has the C library of $1"
	root=$BATS_TEST_TMPDIR/root
	cp -a "$CTR_GPU_BUILD/test/releases/$1/root" "$root"
	populate "$root"
}

# judge_release SUITE [FORMAT]: by its own default unless FORMAT is given.
judge_release() {
	release "$1"
	chroot "$root" "$(ldconfig_of)" ${2:+-c "$2"}
	found libcuda.so.1 /opt/image/libcuda.so.1
	merge
	all_found
	listed
	found libfast.so.1 "$(fast_path)"
	sum=$(sha256sum "$root/etc/ld.so.cache")
	merge
	[ "$sum" = "$(sha256sum "$root/etc/ld.so.cache")" ]
	chroot "$root" "$(ldconfig_of)"
	all_found
}

@test "bullseye: glibc 2.31" {
	judge_release bullseye
}

@test "bullseye: the old format with the new one behind it, written and read by glibc 2.31" {
	judge_release bullseye compat
	[ "$(head -c 20 "$root/etc/ld.so.cache")" = glibc-ld.so.cache1.1 ]
	chroot "$root" "$(ldconfig_of)" -c compat
	[ "$(head -c 11 "$root/etc/ld.so.cache")" = ld.so-1.7.0 ]
	all_found
}

@test "trixie: glibc 2.41" {
	judge_release trixie
}

@test "sid" {
	judge_release sid
}
