#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# bats file_tags=long
# shellcheck disable=SC2016,SC2154
#
# The RPM packages, as rpmbuild makes them on any machine, with the programs linked dynamically as on Fedora: what is in them,
# and that the programs of a tree in which they are unpacked run.

load engines

setup_file() {
	require_root
	require_program rpmbuild
	require_program eu-strip
	# The package of Slurm's plugin, where its headers are.
	export slurm=
	[[ $("$e2e/../../pkg/needs" slurm) ]] || slurm=ctr-gpu-slurm
	# Every night with Fedora's flags, which are those of most distributions; else with those of the tree's own build, for which the
	# compiler has made the same already (test/run).
	local flags="ctr_gpu_flags CFLAGS= LDFLAGS="
	[[ -z ${CTR_GPU_TEST_NIGHTLY-} ]] || flags="optflags $(sed -n 's/^%optflags //p' "$e2e/../packages/rpm/fedora-42")"
	"$e2e/../../pkg/make-rpm" "$BATS_FILE_TMPDIR" --nocheck --without=static ${slurm:+--with=slurm} --define "_binary_payload w1.gzdio" \
		--define "$flags" >"$BATS_FILE_TMPDIR/log" 2>&1 ||
		{ cat "$BATS_FILE_TMPDIR/log"; return 1; }
}

# rpm_of PACKAGE: the file
rpm_of() {
	echo "$BATS_FILE_TMPDIR"/rpm/RPMS/*/"$1"-[0-9]*.rpm
}

# The shared library's package is called as the distribution calls such packages.
library_package() {
	[[ -e $(rpm_of ctr-gpu-libs) ]] && echo ctr-gpu-libs || echo libctr-gpu0
}

query() {
	rpm --query --package "$@" 2>/dev/null
}

@test "each package has its files, and nobody's libraries beside them" {
	run query --list "$(rpm_of ctr-gpu)"
	expect_line "/usr/bin/ctr-gpu"
	expect_line "/usr/bin/ctr-gpu-hook"
	expect_line "/usr/libexec/ctr-gpu/ctr-gpu-driverd"
	expect_line "/usr/share/containers/oci/hooks.d/ctr-gpu.json"
	expect "/usr/share/man/man8/ctr-gpu-hook.8"
	expect_line "/usr/bin/ctr-gpu-runtime"
	expect_not "/bin/nvidia-"
	run query --list "$(rpm_of ctr-gpu-nvidia-compat)"
	for name in nvidia-cdi-hook.8 nvidia-container-cli.1 nvidia-container-runtime.8 nvidia-container-runtime-hook.8; do
		expect_line "/usr/bin/${name%.*}"
		expect "/usr/share/man/man${name##*.}/$name"
	done
	expect_not "ctr-gpu"
	run query --list "$(rpm_of "$(library_package)")"
	expect "/libctr-gpu.so.0"
	run query --list "$(rpm_of ctr-gpu-devel)"
	expect_line "/usr/include/ctr-gpu.h"
	expect "/pkgconfig/ctr-gpu.pc"
	expect_not "libctr-gpu.a"
}

@test "NVIDIA's packages are conflicts, and the libraries are required" {
	run query --conflicts "$(rpm_of ctr-gpu-nvidia-compat)"
	expect_line "nvidia-container-toolkit"
	expect_line "nvidia-container-toolkit-base"
	expect_line "libnvidia-container-tools"
	run query --requires "$(rpm_of ctr-gpu)"
	expect "libjansson.so.4()(64bit)"
	expect_not "libctr-gpu.so.0(CTR_GPU_0.1)(64bit)"
	run query --scripts "$(rpm_of ctr-gpu)"
	expect_not "docker"
	expect_not "restart"
}

@test "the module of SELinux's policy is loaded and unloaded, and the abstraction of AppArmor's is a configuration file" {
	run query --list "$(rpm_of ctr-gpu)"
	expect_line "/usr/share/selinux/packages/ctr-gpu.cil"
	run query --scripts "$(rpm_of ctr-gpu)"
	expect "/usr/share/ctr-gpu/selinux load ||"
	expect "/usr/share/ctr-gpu/selinux unload ||"
	run query --configfiles "$(rpm_of ctr-gpu)"
	[[ $output == /etc/apparmor.d/abstractions/ctr-gpu ]]
}

@test "the programs run from the packages' tree" {
	local name tree=$BATS_TEST_TMPDIR/tree

	mkdir "$tree"
	for name in ctr-gpu "$(library_package)"; do
		rpm2cpio "$(rpm_of "$name")" | (cd "$tree" && cpio --quiet -idm)
	done
	run readelf -SW "$tree/usr/bin/ctr-gpu-hook"
	expect ".text"
	expect_not ".debug_info"
	run "$tree/usr/bin/ctr-gpu-hook" --version
	expect_status 0
	expect "ctr-gpu-hook $(sed -n '1s/^ctr-gpu \([0-9.]*\).*/\1/p' "$e2e/../../NEWS")"
	run sandbox wsl-nvidia bash -c 'mkdir -p /usr/libexec && cp -R "$0"/usr/. /usr/ &&
		/usr/bin/ctr-gpu --inventory=dxcore info' "$tree"
	expect_status 0
	expect "NVIDIA GeForce RTX 4090"
}

@test "a program is linked with the static library, and runs" {
	rpm2cpio "$(rpm_of ctr-gpu-static)" | (cd "$BATS_TEST_TMPDIR" && cpio --quiet -idm)
	gcc -o "$BATS_TEST_TMPDIR/program" -I"$e2e/../../include" "$e2e/../../examples/list-adapters.c" "$BATS_TEST_TMPDIR"/usr/lib*/libctr-gpu.a \
		-ljansson -lyaml -ltirpc
	run sandbox wsl-nvidia "$BATS_TEST_TMPDIR/program"
	expect "NVIDIA GeForce RTX 4090"
}

@test "Slurm's plugin: its own file, examples, and slurmd of the release whose headers it was built with" {
	local release

	[[ $slurm ]] || skip "needs libslurm-dev"
	run query --list "$(rpm_of ctr-gpu-slurm)"
	expect "/spank_ctr_gpu.so"
	for name in "$e2e"/../../examples/slurm/*; do
		expect "/slurm/${name##*/}"
	done
	release=$(echo SLURM_VERSION_NUMBER | gcc -E -include slurm/slurm_version.h - | tail -n 1)
	release=$((release >> 16 & 255)).$((release >> 8 & 255))
	run query --requires "$(rpm_of ctr-gpu-slurm)"
	expect_line "slurm-slurmd >= $release"
	expect_line "slurm-slurmd < $release.999"
	expect "ctr-gpu("
	run rpmspec --define "suse_version 1600" --with slurm --query --requires "$BATS_FILE_TMPDIR/rpm/SPECS/ctr-gpu.spec"
	expect_line "slurm-node >= $release"
	run rpmspec --define "fedora 41" --with slurm --query --buildrequires "$BATS_FILE_TMPDIR/rpm/SPECS/ctr-gpu.spec"
	expect_line "slurm-devel"
}

# Fedora, openSUSE Leap, Alma and Oracle have these alike; libraries of our own and versions of their symbols aside.
provided='/bin/sh|/sbin/ldconfig|/usr/bin/(ba)?sh|/usr/bin/pkg-config|pkgconfig\((jansson|libtirpc|yaml-0\.1)\)
rtld\(GNU_HASH\)|ld-linux-(x86-64|aarch64)\.so\..*|lib(c|m|dl|pthread)\.so\.6\(.*|libgcc_s\.so\.1\(.*
libjansson\.so\.4\(.*|libyaml-0\.so\.2\(.*|libtirpc\.so\.3\(.*|libbpf\.so\.1\(.*|libnghttp2\.so\.14\(.*|libprotobuf-c\.so\.1\(.*
slurm-slurmd (>=|<) .*'

# required: what all packages together require of a distribution
required() {
	local package

	for package in "$BATS_FILE_TMPDIR"/rpm/RPMS/*/*.rpm; do
		query --requires "$package"
	done | grep -v '^rpmlib(\|ctr-gpu' | sort -u
}

@test "they require nothing that Fedora, openSUSE, Alma and Oracle lack" {
	run required
	expect "libjansson.so.4()"
	[[ -z $(grep -vxE "$(tr '\n' '|' <<<"$provided" | sed 's/|$//')" <<<"$output") ]] || { echo "$output"; return 1; }
}

# in_root ROOT RPM-OPTION…: rpm on a root of its own
in_root() {
	local root=$1
	shift

	# Debian's says that it should not be used, and since 4.20 what it does without.
	rpm --root "$root" "$@" 2>&1 | sed '/^rpm: /d; /^warning: private mounts in chroot not implemented/d'
	return "${PIPESTATUS[0]}"
}

# A root that has ldconfig, which a scriptlet runs, and one package with everything that ours require of a distribution.
empty_root() {
	local root=$BATS_TEST_TMPDIR/root

	mkdir -p "$root/sbin" "$root/etc"
	cp -L /sbin/ldconfig "$root/sbin/ldconfig"
	mkdir -p "$root/bin" "$root/etc/cdi" "$root/proc"
	cp -L "$(command -v busybox)" "$root/bin/sh"
	for name in rm cat dirname grep id mv sed mkdir; do ln -s sh "$root/bin/$name"; done
	# What the package's command needs of the distribution.
	rpm2cpio "$(rpm_of "$(library_package)")" | (cd "$BATS_TEST_TMPDIR" && cpio --quiet --extract --make-directories)
	ldd "$(find "$BATS_TEST_TMPDIR/usr" -name 'libctr-gpu.so.0')" | grep -v libctr-gpu | grep -o '/[^ ]*' | while read -r file; do
		install -D "$file" "$root${file#/usr}"
	done
	echo '{"path": "/usr/bin/ctr-gpu-hook"}' >"$root/etc/cdi/ctr-gpu-nvidia.json"
	touch "$root/etc/cdi/ctr-gpu-mine.json" "$root/etc/cdi/mine.json"
	in_root "$root" --initdb
	# Slurm writes 22.05.3 where its headers have 22 and 5.
	distribution distribution "$(required | sed -E '/^slurm-slurmd </d; s/^(slurm-slurmd) >= ([0-9]+)\.([0-9])$/\1 >= \2.0\3/; s/^(slurm-slurmd) >= (.*)/\1 = \2.3/; s/^/Provides: /')"
	in_root "$root" --install "$BATS_FILE_TMPDIR"/distribution/RPMS/noarch/distribution-1-1.noarch.rpm
	echo "$root"
}

# distribution NAME TAGS: a package of that name without files
distribution() {
	local directory=$BATS_FILE_TMPDIR/distribution

	mkdir -p "$directory"
	cat >"$directory/$1.spec" <<-END
		Name: $1
		Version: 1
		Release: 1
		Summary: of a distribution
		License: none
		BuildArch: noarch
		$(sed '2,$s/^/\t\t/' <<<"$2")
		%description
		%files
	END
	sed -i 's/^\t*//' "$directory/$1.spec"
	rpmbuild -bb --define "_topdir $directory" "$directory/$1.spec" >"$directory/log" 2>&1 || { cat "$directory/log"; return 1; }
}

@test "installed into an empty root: what they require is there, scriptlets run, every file is owned and as it was" {
	local root

	root=$(empty_root)
	rm -f "$root/etc/ld.so.cache"
	echo /usr/lib64 >"$root/etc/ld.so.conf"
	run in_root "$root" --install "$BATS_FILE_TMPDIR"/rpm/RPMS/*/*.rpm
	expect_status 0
	[[ -z $output ]] || { echo "$output"; return 1; }
	# The scriptlet of the library's package.
	run /sbin/ldconfig -C "$root/etc/ld.so.cache" -p
	expect "/usr/lib64/libctr-gpu.so.0"
	run in_root "$root" --verify --nodeps ctr-gpu "$(library_package)" ctr-gpu-devel ctr-gpu-static ctr-gpu-nvidia-compat
	expect_status 0
	[[ -z $output ]]
	run bash -c 'cd "$1" && find usr ! -type d | while read -r file; do rpm --root "$1" -qf "/$file" >/dev/null || echo "nobody owns $file"; done' - "$root"
	[[ -z $output ]] || { echo "$output"; return 1; }
	# An engine is set up; one that cannot be undone keeps the package.
	echo '{"debug": true}' >"$root/etc/docker.json"
	touch "$root/etc/passwd"
	chroot "$root" /usr/bin/ctr-gpu setup docker --set-as-default --engine-config=/etc/docker.json
	sed -i 's/}$//' "$root/etc/docker.json"
	run in_root "$root" --erase --nodeps ctr-gpu
	expect "ctr-gpu is not removed"
	[[ -x $root/usr/bin/ctr-gpu ]]
	echo '}' >>"$root/etc/docker.json"
	# Erased, only what was there before is left.
	in_root "$root" --erase ctr-gpu "$(library_package)" ctr-gpu-devel ctr-gpu-static ctr-gpu-nvidia-compat ctr-gpu-guard ctr-gpu-kubernetes ctr-gpu-vcuda \
		$slurm ctr-gpu-debuginfo
	run find "$root/usr" -name '*ctr-gpu*' -o -name 'nvidia*'
	expect_not "ctr-gpu"
	expect_not "nvidia"
	[[ $(echo $(ls "$root/etc/cdi")) == "ctr-gpu-mine.json mine.json" && ! -e $root/var/lib/ctr-gpu ]]
	[[ $(jq -c . "$root/etc/docker.json") == '{"debug":true}' ]]
}

@test "a package of NVIDIA's name conflicts" {
	local root

	root=$(empty_root)
	distribution nvidia-container-toolkit "Provides: nothing"
	in_root "$root" --install "$BATS_FILE_TMPDIR"/distribution/RPMS/noarch/nvidia-container-toolkit-1-1.noarch.rpm
	run in_root "$root" --install "$BATS_FILE_TMPDIR"/rpm/RPMS/*/ctr-gpu*.rpm
	[[ $status -ne 0 ]]
	expect "nvidia-container-toolkit conflicts with ctr-gpu-nvidia-compat"
	[[ ! -e $root/usr/bin/nvidia-container-runtime-hook ]]
}

@test "the names of dependencies are those of Fedora, openSUSE and RHEL" {
	local spec=$BATS_FILE_TMPDIR/rpm/SPECS/ctr-gpu.spec distribution

	for distribution in "fedora 41" "rhel 9" "suse_version 1600"; do
		run rpmspec --define "$distribution" --query --qf '%{name}\n' "$spec"
		expect_status 0
		if [[ $distribution == suse* ]]; then
			expect_line "libctr-gpu0"
		else
			expect_line "ctr-gpu-libs"
		fi
		run rpmspec --define "$distribution" --query --buildrequires "$spec"
		expect_status 0
		for library in jansson libtirpc yaml-0.1 cmocka; do
			expect_line "pkgconfig($library)"
		done
		run rpmspec --define "$distribution" --with static --query --buildrequires "$spec"
		expect_status 0
		expect "musl-"
	done
}

@test "rpmlint has nothing against them" {
	require_program rpmlint
	run rpmlint --config "$e2e/../../pkg/rpm/rpmlint.toml" "$BATS_FILE_TMPDIR"/rpm/RPMS/*/*.rpm "$e2e/../../pkg/rpm/ctr-gpu.spec"
	expect_status 0
	expect "0 errors, 0 warnings"
}

@test "the spec with the macros of Fedora, AlmaLinux, Oracle Linux and openSUSE: releases, names, and who is told of which units" {
	local macros spec=$BATS_FILE_TMPDIR/rpm/SPECS/ctr-gpu.spec name

	for macros in "$e2e"/../packages/rpm/*; do
		name=${macros##*/}
		run rpmspec --load "$macros" --query --qf '%{name} %{release}\n' "$spec"
		expect_status 0
		expect_line "ctr-gpu 1$(sed -n 's/^%dist //p' "$macros")"
		[[ $name == opensuse* ]] && expect "libctr-gpu0 1" || expect "ctr-gpu-libs 1."
		run rpmspec --load "$macros" --parse "$spec"
		expect_status 0
		# No macro is left that rpm does not know.
		grep -vE '^%(package|description|prep|build|install|check|(pre|post)(un|trans)?|files|license|doc|dir|changelog)( |$)' <<<"$output" | grep -nE '%[a-z_]*(systemd|service|units|library)|%\{' && return 1
		for units in "ctr-gpu-refresh.service ctr-gpu-refresh.path" "ctr-gpu-vcudad.service ctr-gpu-vcudad.socket" ctr-gpu-device-plugin.service; do
			for step in $([[ $name == opensuse* ]] && echo service_add_pre service_add_post service_del_preun 'service_del_postun.*' ||
				echo systemd_post systemd_preun 'systemd_postun.*'); do
				[[ $(grep -cxE "echo $step $units" <<<"$output") -eq 1 ]] || { echo "$name: $step $units"; return 1; }
			done
		done
		# A package that stays, since an engine could not be set back, goes on.
		sed -n '/^%preun$/,/^%postun$/p' <<<"$output" | tr '\n' ' ' | grep -qE 'unregister.*exit 1.*echo (systemd|service_del)_preun'
	done
}
