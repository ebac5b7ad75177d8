# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash disable=SC2016
#
# Root filesystems for containers, made offline from this machine's own files: its C library, its loader, a static busybox
# and the probe program. `image NAME` makes one when it is asked for first and prints its directory; nobody may write there.
#
#	debian          multiarch library directories, a loader cache made by ldconfig
#	fedora-like     /usr/lib64 and no multiarch directories: nothing is found without the cache
#	no-cache        no /etc/ld.so.cache
#	empty-etc       an /etc with nothing in it
#	no-etc          no /etc
#	musl            musl's loader instead of glibc's
#	baked           a libcuda.so.1 and a libnvidia-ml.so.1 of its own, as files and in the cache
#	nix             programs for a loader in /nix/store, which reads no /etc/ld.so.cache
#	many-libraries  5,000 libraries in the cache
#	few-libraries   100 of them, to compare with; libraries-1000 and libraries-2500 likewise

: "${CTR_GPU_BUILD:?the directory that make builds in}"

images_script=${BASH_SOURCE[0]}
images_directory=${CTR_GPU_IMAGES:-$CTR_GPU_BUILD/test/images}
tools_directory=$CTR_GPU_BUILD/test/tools

# The directories, links and programs that every image has.
image_base() {
	local root=$1 directory

	mkdir -p "$root"/usr/{bin,lib,sbin,lib64} "$root"/{dev,proc,sys,tmp,root,run,var,etc}
	chmod 1777 "$root/tmp"
	for directory in bin lib sbin lib64; do
		ln -s "usr/$directory" "$root/$directory"
	done
	cp "$(command -v busybox)" "$root/usr/bin/busybox"
	for program in sh cat cut env grep id ls mknod mount sleep stat touch; do
		ln -s busybox "$root/usr/bin/$program"
	done
	printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n' >"$root/etc/passwd"
	printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"
}

# This machine's C library and what belongs to it, into LIBDIR; its loader to the path that programs name.
image_glibc() {
	local root=$1 libdir=$2 loader libc name

	loader=$(ldd "$tools_directory/probe" | sed -n 's,^\s*\(/[^ ]*ld-[^ ]*\) .*,\1,p')
	libc=$(ldd "$tools_directory/probe" | sed -n 's,.*libc\.so\.6 => \([^ ]*\) .*,\1,p')
	mkdir -p "$root$libdir" "$root$(dirname "$loader")"
	cp -L "$loader" "$root$loader"
	for name in libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1; do
		cp -L "$(dirname "$libc")/$name" "$root$libdir/"
	done
	cp "$tools_directory/probe" "$root/usr/bin/probe"
}

image_cache() {
	local root=$1
	shift

	mkdir -p "$root/etc/ld.so.conf.d"
	echo 'include /etc/ld.so.conf.d/*.conf' >"$root/etc/ld.so.conf"
	printf '%s\n' "$@" >"$root/etc/ld.so.conf.d/image.conf"
	/sbin/ldconfig -r "$root"
}

# The multiarch directory of this machine's compiler, /usr/lib/x86_64-linux-gnu.
multiarch_directory() {
	echo "/usr/lib/$(gcc -print-multiarch)"
}

make_image_debian() {
	image_base "$1"
	image_glibc "$1" "$(multiarch_directory)"
	image_cache "$1" /usr/local/lib "$(multiarch_directory)"
}

make_image_fedora-like() {
	image_base "$1"
	image_glibc "$1" /usr/lib64
	image_cache "$1" /usr/lib64
}

make_image_no-cache() {
	make_image_debian "$1"
	rm -r "${1:?}/etc/ld.so.cache" "$1/etc/ld.so.conf.d"
}

make_image_empty-etc() {
	make_image_debian "$1"
	rm -r "${1:?}/etc"
	mkdir "$1/etc"
}

make_image_no-etc() {
	make_image_debian "$1"
	rm -r "${1:?}/etc"
}

make_image_musl() {
	local loader

	image_base "$1"
	loader=$(readelf -l "$tools_directory/probe-musl" | sed -n 's,.*interpreter: \(.*\)].*,\1,p')
	cp -L "$loader" "$1$loader"
	cp "$tools_directory/probe-musl" "$1/usr/bin/probe"
}

make_image_baked() {
	local libdir

	libdir=$(multiarch_directory)
	make_image_debian "$1"
	cp "$CTR_GPU_BUILD/test/stale/"lib*.so.1 "$1$libdir/"
	image_cache "$1" /usr/local/lib "$libdir"
}

# As Nix builds its C library: the loader's cache is below its own prefix, where none is.
make_image_nix() {
	local loader

	image_base "$1"
	image_glibc "$1" "$(multiarch_directory)"
	loader=$(readelf -l "$tools_directory/probe" | sed -n 's,.*interpreter: \(.*\)].*,\1,p')
	mkdir -p "$1/nix/store/g"
	perl -pe 's,/etc/ld\.so\.cache,/nix/ld.so.cache,g' "$1$loader" >"$1/nix/store/g/ld.so"
	chmod 755 "$1/nix/store/g/ld.so"
	rm "$1$loader"
	loader=$loader perl -pi -e 's{\Q$ENV{loader}\E}{"/nix/store/g/ld.so" . "\0" x (length($ENV{loader}) - 18)}ge' "$1/usr/bin/probe"
}

# The cache of an image with many libraries. Most of the files go once ldconfig has seen them: nothing but the cache grows
# with their number, and importing an image is not what the tests are about.
image_with_libraries() {
	local root=$1 count=$2 libdir

	libdir=$(multiarch_directory)
	make_image_debian "$root"
	"$tools_directory/libraries" "$CTR_GPU_BUILD/test/stale/libgen00000.so.1" "$count" "$root$libdir"
	image_cache "$root" /usr/local/lib "$libdir"
	find "$root$libdir" -name 'libgen*' ! -name 'libgen*00.so.1' -delete
}

make_image_many-libraries() {
	image_with_libraries "$1" 5000
}

make_image_libraries-1000() {
	image_with_libraries "$1" 1000
}
make_image_libraries-2500() {
	image_with_libraries "$1" 2500
}
make_image_few-libraries() {
	image_with_libraries "$1" 100
}

# image NAME: print the directory of an image that is there or is made now.
image() {
	local name=$1 root=$images_directory/$1 scratch

	if [[ ! -d $root ]]; then
		mkdir -p "$images_directory"
		scratch=$(mktemp -d "$images_directory/.new-XXXXXX") || return
		chmod 755 "$scratch"
		# A shell of its own: in a condition `set -e` would have no effect.
		if ! bash -ec 'source "$0"; "make_image_$1" "$2"' "$images_script" "$name" "$scratch" >&2 ||
			! mv -T "$scratch" "$root" 2>/dev/null; then
			rm -rf "$scratch"
			[[ -d $root ]] || return 1
		fi
	fi
	echo "$root"
}

# image_copy NAME DIRECTORY: a copy that a container may write to.
image_copy() {
	local root

	root=$(image "$1") || return
	mkdir -p "$2" && cp -a "$root/." "$2/"
}

# image_archive NAME TAG FILE: an image as `docker save` writes it, which sleeps unless it is told what to do
image_archive() {
	local directory layer

	directory=$(mktemp -d "$BATS_FILE_TMPDIR/archive-XXXXXX")
	mkdir "$directory/layer"
	layer=$directory/layer/layer.tar
	tar -C "$(image "$1")" -c . >"$layer"
	jq -n --arg sum "sha256:$(sha256sum "$layer" | cut -d ' ' -f 1)" --arg architecture "$(dpkg --print-architecture)" \
		'{architecture: $architecture, os: "linux", config: {Env: ["PATH=/usr/sbin:/usr/bin:/bin"], Cmd: ["sleep", "infinity"]},
		  rootfs: {type: "layers", diff_ids: [$sum]}}' >"$directory/config.json"
	jq -n --arg tag "$2" '[{Config: "config.json", RepoTags: [$tag], Layers: ["layer/layer.tar"]}]' >"$directory/manifest.json"
	tar -C "$directory" -cf "$3" manifest.json config.json layer
}
