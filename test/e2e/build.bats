#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# bats file_tags=long
# shellcheck disable=SC2016,SC2030,SC2031,SC2154
#
# The build, for those who are not its authors: from an unpacked tarball, in a directory with a space in its name, as root in
# somebody's checkout, without what it needs.

load engines

setup_file() {
	require_root
	export tree="$BATS_FILE_TMPDIR/John Doe/ctr-gpu" MAINTAINER='Jane Roe <jane@example.org>'
	chmod 755 "$BATS_RUN_TMPDIR" "$BATS_FILE_TMPDIR"
	mkdir -p "$tree"
	(cd "$e2e/../.." && pkg/sources | tar --null -T - -cf - | tar -xf - -C "$tree")
	# A repository around it has nothing to say.
	mkdir "$BATS_FILE_TMPDIR/John Doe/.git"
}

# in_tree COMMAND…: as a user types it
in_tree() {
	run env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS -C "$tree" "$@"
}

expect_before() {
	[[ $output == *"$1"*"$2"* ]] && return
	printf 'expected "%s" before "%s" in: %s\n' "$1" "$2" "$output"
	return 1
}

@test "make, static" {
	# Without a target it is everything, whatever else the machine has: Ubuntu's bpftool refuses kernels for which it has no tools.
	mkdir "$BATS_TEST_TMPDIR/ubuntu"
	printf '#!/bin/sh\necho "WARNING: bpftool not found for kernel" >&2\nexit 2\n' >"$BATS_TEST_TMPDIR/ubuntu/bpftool"
	chmod 755 "$BATS_TEST_TMPDIR/ubuntu/bpftool"
	in_tree env "PATH=$BATS_TEST_TMPDIR/ubuntu:$PATH" make -j2
	expect_status 0
	[[ ! $("$tree/pkg/needs" guard) ]] || expect "ctr-gpu-guard is left out"
	[[ $("$tree/pkg/needs" guard) ]] || "$tree/build/bin/ctr-gpu-guard" check || [[ $? -eq 1 ]]
	"$tree/build/bin/ctr-gpu" --version
	in_tree make static
	expect_status 0
	"$tree/build/bin/ctr-gpu-hook" --version
	tar -tzf "$tree"/build/static/ctr-gpu-*.tar.gz | grep '/bin/ctr-gpu-hook$'
	# The path of the tree is in none of them.
	run grep -lr "John Doe" "$tree/build/bin" "$tree/build/lib"
	expect_status 1
}

@test "what was built once is not built again" {
	in_tree make
	expect_status 0
	[[ -z $output ]]
}

@test "Arch's recipe shares out all that is installed among its packages, each file once" {
	in_tree bash -euc '
		source pkg/arch/PKGBUILD
		srcdir=$1/src
		mkdir -p "$srcdir"
		ln -s "$PWD" "$srcdir/ctr-gpu-$pkgver"
		# What was built above is as good as what the recipe would build.
		_settings+=(STATIC=1)
		cd "$srcdir"
		build >&2
		for package in "${pkgname[@]}"; do
			pkgdir=$1/$package
			mkdir "$pkgdir"
			cd "$srcdir"
			"package_$package" >&2
			(cd "$pkgdir" && find . ! -type d) >>"$1/packed"
			[[ $package != ctr-gpu ]] || "$pkgdir/usr/bin/ctr-gpu" --version >&2
		done
		(cd "$srcdir/root" && { find . ! -type d; echo ./usr/share/libalpm/hooks/ctr-gpu.hook; } | sort) | diff - <(sort "$1/packed") >&2
		echo "version $pkgver, $(wc -l <"$1/packed") files"
	' arch "$BATS_TEST_TMPDIR"
	expect_status 0
	expect "version $(sed -n '1s/^ctr-gpu \([0-9.]*\).*/\1/p' "$tree/NEWS"), "
	[[ $(wc -l <"$BATS_TEST_TMPDIR/packed") -gt 100 ]]
}

@test "the home rules hold, and a file that breaks one is found" {
	mkdir "$BATS_TEST_TMPDIR/bin"
	ln -s "$(type -P true)" "$BATS_TEST_TMPDIR/bin/shellcheck"
	printf '#!/bin/sh\ncase $* in *-fsyntax-only*) exit ;; esac\nexec gcc "$@"\n' >"$BATS_TEST_TMPDIR/bin/cc"
	chmod 755 "$BATS_TEST_TMPDIR/bin/cc"
	sed -i '/SPDX/d' "$tree/src/base/span.h"
	# Headers and scripts are those of the checkout, whose own run has compiled the ones and had shellcheck read the others.
	in_tree env "PATH=$BATS_TEST_TMPDIR/bin:$PATH" CC=cc test/checks
	cp -p "$e2e/../../src/base/span.h" "$tree/src/base/"
	expect_status 0
	expect_line "# src/base/span.h"
	[[ $(grep '^not ok' <<<"$output") =~ ^not\ ok\ [0-9]+\ -\ every\ source\ file\ has\ its\ licence\ line$ ]] ||
		{ grep -A 20 '^not ok' <<<"$output"; return 1; }
	[[ $(grep -c '^ok' <<<"$output") -gt 80 ]]
}

@test "tests run, in a copy" {
	in_tree make -j2 build/test/unit/dxg/utf16_test build/test/unit/base/err_test
	in_tree test/run build unit
	expect_status 0
	expect "unit: dxg/utf16"
	expect " 0 failed, 0 skipped"
}

# test/fresh has it from a clone, for each commit.
# bats test_tags=nightly
@test "make demo" {
	in_tree make demo
	expect_status 0
	expect "The container found the GPU of its"
	# What it does not show it does not build.
	[[ ! -e $tree/build/test/examples && ! -e $tree/build/test/stale ]]
}

# deb.bats and rpm.bats have the packages, made of a checkout, for each commit.
# bats test_tags=nightly
@test "make deb, rpm: named by who builds them, and what they do is said" {
	require_program dh
	require_program rpmbuild
	DEB_BUILD_OPTIONS=nocheck in_tree make deb
	expect_status 0
	expect_before "DEB  compiling" "DEB  packing"
	[[ $(dpkg-deb -f "$tree"/build/deb/ctr-gpu_*.deb Maintainer) == "$MAINTAINER" ]]
	in_tree make rpm RPM_OPTIONS=--nocheck
	expect_status 0
	expect_before "RPM  compiling" "RPM  packing"
	rpm -qp --changelog "$tree"/build/rpm/RPMS/*/ctr-gpu-[0-9]*.rpm | grep -F "$MAINTAINER"
	grep -v '^Maintainer: ' "$tree/pkg/deb/control" | diff - <(grep -v '^Maintainer: ' "$e2e/../../pkg/deb/control")
}

@test "what takes long says how far it is: in lines, and on a terminal in one" {
	local words='echo "  CC   src/a.c"; echo "  CC   vcuda/b.c"; echo "  CC   src/a.c (musl)"; echo "  CC   src/d.c"; echo "  CC   src/d.c (musl)"; echo "  CC   vcuda/test/c.c"; echo "== unit"; echo "Processing files: x"; echo reason; exit 3'

	in_tree pkg/progress RPM "$BATS_TEST_TMPDIR/log" sh -c "$words"
	expect_status 3
	[[ $output == "  RPM  compiling"$'\n'"  RPM  testing"$'\n'"  RPM  packing"$'\n'*reason ]]
	in_tree script --quiet --return --command "pkg/progress RPM '$BATS_TEST_TMPDIR/log' sh -c '$words'" /dev/null
	expect_status 3
	expect $'\r\e[K  RPM  compiling 3 of '
	expect_not "compiling 4 of"
}

@test "packages have their builder's name where no other is given" {
	in_tree env -u MAINTAINER DEBFULLNAME="A B" DEBEMAIL=a@b.example pkg/version maintainer
	expect_line "A B <a@b.example>"
	printf '[user]\n\tname = C D\n\temail = c@d.example\n' >"$BATS_TEST_TMPDIR/.gitconfig"
	in_tree env -u MAINTAINER -u DEBFULLNAME -u DEBEMAIL -u EMAIL HOME="$BATS_TEST_TMPDIR" pkg/version maintainer
	expect_line "C D <c@d.example>"
	in_tree env -u MAINTAINER -u DEBFULLNAME -u DEBEMAIL -u EMAIL HOME=/nonexistent pkg/version maintainer
	[[ $output == *"<root@"*">" ]]
	# Where the resolver has no name for the machine.
	mkdir "$BATS_TEST_TMPDIR/bin"
	printf '#!/bin/sh\necho\n' >"$BATS_TEST_TMPDIR/bin/hostname"
	chmod 755 "$BATS_TEST_TMPDIR/bin/hostname"
	in_tree env -u MAINTAINER -u DEBFULLNAME -u DEBEMAIL -u EMAIL HOME=/nonexistent PATH="$BATS_TEST_TMPDIR/bin:$PATH" pkg/version maintainer
	[[ $output == *"<root@"?*">" ]]
}

@test "root leaves nothing of its own in somebody's checkout" {
	mv "$tree/build" "$BATS_TEST_TMPDIR/built"
	mkdir -p "$BATS_TEST_TMPDIR/built/test"
	cp -a "$CTR_GPU_BUILD/test/hosts" "$BATS_TEST_TMPDIR/built/test/"
	chown -R 1234:1234 "$tree" "$BATS_TEST_TMPDIR/built"
	chmod 755 "$(dirname "$tree")"
	# The owner has no home to cache in, and may read what root's compilers did where test/run keeps it.
	export CCACHE_READONLY=1 CCACHE_TEMPDIR=$BATS_TEST_TMPDIR/ccache
	install -d -m 1777 "$CCACHE_TEMPDIR"
	setpriv --reuid 1234 --regid 1234 --clear-groups test -r "${CCACHE_DIR:-/nonexistent}/." || export CCACHE_DISABLE=1
	# Where there is no build directory yet; then with most of what was built before, and some of each kind made anew.
	in_tree make build/src/base/str.o build/musl/src/base/str.o
	expect_status 0
	run find "$tree" -user 0
	[[ -z $output ]]
	[[ -e $tree/build/musl/src/base/str.o ]]
	rm -r "$tree/build"
	mv "$BATS_TEST_TMPDIR/built" "$tree/build"
	(cd "$tree/build" && rm -rf bin lib install static gen/commit gen/try_program* {,musl/}src/base hooks vcuda/protocol test/hosts/enter test/tools)
	in_tree make -j2 install DESTDIR="$BATS_TEST_TMPDIR/root"
	expect_status 0
	[[ -e $tree/build/src/base/str.o ]]
	in_tree make demo
	expect_status 0
	in_tree make install-compat install-vcuda DESTDIR="$BATS_TEST_TMPDIR/all"
	expect_status 0
	[[ -L $BATS_TEST_TMPDIR/all/usr/bin/nvidia-cdi-hook && -x $BATS_TEST_TMPDIR/all/usr/libexec/ctr-gpu/ctr-gpu-vcudad ]]
	in_tree make uninstall DESTDIR="$BATS_TEST_TMPDIR/all"
	run find "$BATS_TEST_TMPDIR/all" -name '*ctr-gpu*'
	[[ -z $output ]]
	expect_status 0
	run find "$BATS_TEST_TMPDIR/all" ! -type d
	[[ -z $output ]]
	[[ -x $BATS_TEST_TMPDIR/root/usr/bin/ctr-gpu-hook && -O $BATS_TEST_TMPDIR/root/usr/bin/ctr-gpu-hook ]]
	run find "$tree" -user 0
	[[ -z $output ]]
	in_tree setpriv --reuid 1234 --regid 1234 --clear-groups make clean
	expect_status 0
	[[ ! -e $tree/build ]]
}

@test "what a package has installed is neither overwritten nor deleted" {
	local target packaged=$BATS_TEST_TMPDIR/packaged rpm=$BATS_TEST_TMPDIR/rpm

	mkdir -p "$packaged/bin" "$rpm/bin"
	touch "$packaged/bin/ctr-gpu" "$rpm/bin/ctr-gpu"
	mkdir "$BATS_TEST_TMPDIR/dpkg"
	printf '#!/bin/sh\n[ "$1 $2" = "-S %s/bin/ctr-gpu" ] && echo "ctr-gpu: $2"\n' "$packaged" >"$BATS_TEST_TMPDIR/dpkg/dpkg-query"
	printf '#!/bin/sh\n[ "$5" = %s/bin/ctr-gpu ] && echo ctr-gpu-libs && exit\necho "file $5 is not owned by any package"; exit 1\n' \
		"$rpm" >"$BATS_TEST_TMPDIR/dpkg/rpm"
	chmod 755 "$BATS_TEST_TMPDIR"/dpkg/*
	for target in install install-compat install-vcuda uninstall; do
		in_tree env "PATH=$BATS_TEST_TMPDIR/dpkg:$PATH" make "$target" "prefix=$packaged"
		expect_status 2
		expect "are those of the package ctr-gpu. Remove the package first"
		expect_not "  CC "
	done
	[[ $(find "$packaged" -type f) == "$packaged/bin/ctr-gpu" ]]
	in_tree env "PATH=$BATS_TEST_TMPDIR/dpkg:$PATH" make uninstall "prefix=$rpm"
	expect_status 2
	expect "are those of the package ctr-gpu-libs."
	in_tree env "PATH=$BATS_TEST_TMPDIR/dpkg:$PATH" make not-packaged prefix=/opt/other
	expect_status 0
	in_tree env "PATH=$BATS_TEST_TMPDIR/dpkg:$PATH" make not-packaged "prefix=$packaged" "DESTDIR=$BATS_TEST_TMPDIR/staged"
	expect_status 0
	# On a simulated host the package has files that are not there.
	rm "$packaged/bin/ctr-gpu"
	in_tree env "PATH=$BATS_TEST_TMPDIR/dpkg:$PATH" make not-packaged "prefix=$packaged"
	expect_status 0
}

# The flake's package and module, as Nix sees them, with a stand-in for what it takes of nixpkgs: paths are names.
nix_sees() {
	cat >"$BATS_TEST_TMPDIR/host.nix" <<-END
		let
		  lib = import (/. + "$tree/test/packages/nixpkgs/lib.nix");
		  pkgs = lib.genAttrs [ "cmocka" "crun" "jansson" "libbpf" "libtirpc" "libyaml" "linuxHeaders" "nghttp2" "pkg-config" "protobufc"
		    "rpcsvc-proto" "runc" "systemd" ] (name: "/\${name}") // {
		    inherit lib;
		    callPackage = f: _: f (builtins.intersectAttrs (builtins.functionArgs f) pkgs);
		    llvmPackages.clang-unwrapped = "/clang";
		    runCommand = name: _: text: { outPath = "/\${name}"; inherit text; };
		    stdenv = { hostPlatform.system = "x86_64-linux"; mkDerivation = package: package // { outPath = "/ctr-gpu"; }; };
		  };
		  self = (import (/. + "$tree/pkg/nix/flake.nix")).outputs {
		    inherit self;
		    nixpkgs = { inherit lib; legacyPackages = lib.genAttrs [ "x86_64-linux" "aarch64-linux" ] (_: pkgs); };
		  };
		  package = self.packages.x86_64-linux.default;
		  module = self.nixosModules.default { inherit lib pkgs config; };
		  config = {
		    services.ctr-gpu = { enable = true; nvidiaCompat = true; settings.inventory = "ioctl"; } //
		      { package = module.options.services.ctr-gpu.package.default; };
		    hardware.nvidia-container-toolkit.enable = true;
		    virtualisation.docker.enable = true;
		  };
		in
		{
		  inherit (package) version makeFlags postInstall;
		  config = module.config;
		  names = (builtins.elemAt module.config.environment.systemPackages 1).text;
		}
	END
	nix-instantiate --store dummy:// --eval --strict --json "$BATS_TEST_TMPDIR/host.nix" 2>/dev/null
}

@test "Nix's flake: the version of NEWS, and a module that names what is installed" {
	local path seen
	local -a flags

	command -v nix-instantiate >/dev/null || skip "needs nix-bin"
	seen=$(nix_sees)
	[[ $(jq -r .version <<<"$seen") == "$(sed -n '1s/^ctr-gpu \([0-9.]*\).*/\1/p' "$tree/NEWS")" ]]
	jq -e '.config.assertions[0].assertion == false and (.config.environment.etc["ctr-gpu/config.json"].text | fromjson |
		.runtimes == ["/runc/bin/runc", "/crun/bin/crun"] and .inventory == "ioctl")' <<<"$seen"
	# The placeholder for the package's place is a hash of Nix's own.
	mapfile -t flags < <(jq -r '.makeFlags[]' <<<"$seen" | sed -E 's,/[0-9a-z]{52},/ctr-gpu,')
	in_tree bash -c 'for package in ctr-gpu ctr-gpu-vcuda; do make -s --no-print-directory "$@" "packaged-$package"; done' - "${flags[@]}"
	expect_status 0
	for path in $(jq -r '.config.virtualisation | .docker.daemon.settings.runtimes.nvidia.path,
		(.containers.containersConf.settings.engine.hooks_dir[0] + "/ctr-gpu.json")' <<<"$seen") \
		/ctr-gpu/lib/systemd/system/ctr-gpu-refresh.{service,path} /ctr-gpu/lib/udev/rules.d/61-ctr-gpu.rules \
		"$(jq -r '.config.security.apparmor.packages[0]' <<<"$seen")/etc/apparmor.d/abstractions/ctr-gpu"; do
		expect_line "${path#/}"
	done
	grep -q /usr/bin/systemctl "$tree/pkg/udev/61-ctr-gpu.rules"
	# NVIDIA's names are those of pkg/files, and lead to the same.
	[[ $(jq -r .names <<<"$seen" | sed -n 's,.*ln -s /ctr-gpu/bin/\([^ ]*\) ".*/\([^/"]*\)",\1 \2,p' | sort) == \
		"$(sed -n 's,^ctr-gpu-nvidia-compat *| link *| \([^ ]*\) *| @bindir@/\([^ ]*\) .*,\1 \2,p' "$tree/pkg/files" | sort)" ]]
}

@test "flags of a packager's cancel none that a program needs" {
	in_tree make -n V=1 LDFLAGS= CPPFLAGS= CFLAGS= O=build-flags \
		build-flags/test/unit/base/memstream_test build-flags/src/cli/main.o
	expect_status 0
	expect "--wrap=realloc"
	expect "-Itest/unit"
	expect "-DCTR_GPU_COMMIT="
}

@test "make uninstall takes CDI specs along that name what it removes, and no others" {
	run sandbox wsl-hybrid env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS sh -ec 'rm -rf /etc/cdi
		ctr-gpu cdi generate --kind=nvidia.com/gpu --hook=/opt/ctr-gpu/bin/ctr-gpu-hook
		ctr-gpu cdi generate --kind=intel.com/gpu --hook=/usr/bin/ctr-gpu-hook
		ls /etc/cdi
		make -C "$0" uninstall prefix=/opt/ctr-gpu
		echo left: $(ls /etc/cdi)
		# Directories for what setup writes go, too, unless something is in them.
		rm /etc/cdi/*; mkdir -p /etc/ctr-gpu
		make -C "$0" uninstall prefix=/opt/ctr-gpu >/dev/null
		ls -d /etc/cdi /etc/ctr-gpu 2>/dev/null || echo none is left' "$tree"
	expect_status 0
	expect_line ctr-gpu-nvidia.json
	expect_line "left: ctr-gpu-intel.json"
	expect_line "none is left"
}

@test "a build directory of root's is not written to in vain" {
	rm -rf "$tree/build"
	mkdir "$tree/build"
	chown 0:0 "$tree/build"
	in_tree setpriv --reuid 1234 --regid 1234 --clear-groups make
	[[ $status -ne 0 ]]
	expect "sudo chown -R 1234 build"
	expect_not "CC"
	rmdir "$tree/build"
}

# on DISTRIBUTION COMMAND…: as /etc/os-release calls it
on() {
	printf 'ID=%s\n' "$1" >"$BATS_TEST_TMPDIR/os-release"
	shift
	in_tree unshare --mount --propagation private -- bash -c 'mount --bind "$0" "$(readlink -f /etc/os-release)" && "$@"' \
		"$BATS_TEST_TMPDIR/os-release" "$@"
	[[ $status -ne 0 ]]
	expect_not "  CC "
	expect_not "ot found"
	expect_not "No such file"
}

@test "what is missing is named, all of it and before a compiler runs, with the line that installs it" {
	rm -rf "$tree/build"
	# Neither library is known here.
	mkdir "$BATS_TEST_TMPDIR/pc"
	cp "$(pkg-config --variable=pcfiledir libtirpc)/libtirpc.pc" "$BATS_TEST_TMPDIR/pc/"
	export PKG_CONFIG_LIBDIR=$BATS_TEST_TMPDIR/pc
	on debian make
	expect_line "This machine lacks what the build needs: jansson libyaml"
	expect_line "To install it: sudo apt-get install libjansson-dev libyaml-dev"
	on fedora make STATIC=0
	expect_line "To install it: sudo dnf install jansson-devel libyaml-devel"
	on fedora make
	expect "make STATIC=0"
	on opensuse-leap make STATIC=0
	expect_line "To install it: sudo zypper install libjansson-devel libyaml-devel"
	on alpine make
	expect_line "To install it: sudo apk add jansson-dev jansson-static yaml-dev yaml-static"
	on gentoo make
	expect "Debian calls it libjansson-dev libyaml-dev"
	on debian make check-unit
	expect "libcmocka-dev"
	unset PKG_CONFIG_LIBDIR
	on debian make CC=no-such-compiler
	expect_line "This machine lacks what the build needs: compiler"
	expect_line "To install it: sudo apt-get install gcc libc6-dev"
	# A new machine has neither; both are named at once.
	on debian bash -c 'mount -t tmpfs none "/usr/lib/$(uname -m)-linux-musl" && make CC=no-such-compiler'
	expect_line "This machine lacks what the build needs: compiler musl"
	expect_line "To install it: sudo apt-get install gcc libc6-dev musl-dev"
	CC=no-such-compiler on debian make
	expect_line "This machine lacks what the build needs: compiler"
	# A compiler in the environment is for this machine.
	CC=gcc on debian make CROSS_COMPILE=aarch64-linux-none-
	expect_line "To install it: sudo dpkg --add-architecture arm64"
	expect "sudo apt-get install crossbuild-essential-arm64 musl-dev:arm64 pkg-config:arm64 libjansson-dev:arm64"
	expect_not "gcc libc6-dev"
	on debian make PKG_CONFIG=no-such-program
	expect "pkg-config"
}

@test "where clang or libbpf cannot be had the guard is left out, with one line, and nothing else" {
	local name

	mkdir "$BATS_TEST_TMPDIR/apt"
	printf '#!/bin/sh\nexit 1\n' >"$BATS_TEST_TMPDIR/apt/dpkg-query"
	printf '#!/bin/sh\n[ "$2" = clang ] && echo "  Candidate: (none)" || echo "  Candidate: 1.0"\n' >"$BATS_TEST_TMPDIR/apt/apt-cache"
	chmod 755 "$BATS_TEST_TMPDIR"/apt/* "$BATS_TEST_TMPDIR"
	in_tree setpriv --reuid 65534 --regid 65534 --clear-groups env "PATH=$BATS_TEST_TMPDIR/apt:$PATH" test/install-deps deb
	expect_line "apt has no clang here, so ctr-gpu-guard is left out"
	expect "	sudo apt-get install build-essential debhelper gcc libbpf-dev "
	# dpkg-buildpackage and rpmbuild are told.
	for name in deb rpm; do
		printf '#!/bin/sh\necho "$*" >&2\nexit 1\n' >"$BATS_TEST_TMPDIR/apt/dpkg-buildpackage"
		cp "$BATS_TEST_TMPDIR/apt/dpkg-buildpackage" "$BATS_TEST_TMPDIR/apt/rpmbuild"
		chmod 755 "$BATS_TEST_TMPDIR"/apt/*
		in_tree env "PATH=$BATS_TEST_TMPDIR/apt:$PATH" PKG_CONFIG=false "pkg/make-$name" "$BATS_TEST_TMPDIR/out"
		expect_status 1
		expect_line "make $name: the package ctr-gpu-guard is left out, as this machine lacks: libbpf"
		expect "$([[ $name == deb ]] && echo " -Ppkg.ctr-gpu.noguard" || echo " --without=guard ")"
		in_tree env "PATH=$BATS_TEST_TMPDIR/apt:$PATH" "pkg/make-$name" "$BATS_TEST_TMPDIR/out"
		expect_not "left out"
		expect_not "guard"
	done
}

@test "packages of a checkout without git: it is named, and nothing is built of no files" {
	local name

	mkdir "$tree/.git" "$BATS_TEST_TMPDIR/bin"
	find /usr/bin ! -name git ! -type d -exec ln -s -t "$BATS_TEST_TMPDIR/bin" {} +
	for name in deb rpm; do
		in_tree env "PATH=$BATS_TEST_TMPDIR/bin" "pkg/make-$name" "$BATS_TEST_TMPDIR/out"
		expect_status 1
		expect_line "pkg/sources: this is a checkout of git, which is not installed; install git"
		expect_not "not found"
		expect_not "failed"
	done
	rmdir "$tree/.git"
}

@test "packages of another architecture: what to do before they can be installed" {
	DEB_HOST_ARCH=riscv64 in_tree test/install-deps deb
	expect_status 1
	expect "Make apt know that architecture, then try again:"
	expect_line "	sudo dpkg --add-architecture riscv64 && sudo apt-get update"
}

@test "new warnings of a compiler that is newer than this tree do not stop the build" {
	printf '#!/bin/sh\n[ "$1" != -dumpversion ] || { echo 99; exit; }\nexec gcc "$@"\n' >"$BATS_TEST_TMPDIR/newer-cc"
	chmod 755 "$BATS_TEST_TMPDIR/newer-cc"
	# The tree has an owner without a home by now.
	export CCACHE_DISABLE=1
	in_tree make V=1 O=build-newer CC="$BATS_TEST_TMPDIR/newer-cc" build-newer/src/base/str.o
	expect_status 0
	expect_not "-Werror"
	in_tree make V=1 O=build-known build-known/src/base/str.o
	expect_status 0
	expect "-Werror"
}

@test "make help" {
	local target help

	in_tree make help
	expect_status 0
	help=$output
	# Every target that CONTRIBUTING.md has, and none that there is not.
	for target in $(grep -ohP '(?<=[`(]|sudo |    )make [a-z][a-z0-9-]+(?![/a-z0-9-])' "$tree/CONTRIBUTING.md" | cut -d ' ' -f 2 | sort -u); do
		grep -E "(make|[,;]) $target([ ,:]|\$)" <<<"$help" || { echo "$target is not in the help"; return 1; }
	done
	in_tree make --question --print-data-base help
	for target in $(grep -oE 'make [a-z][a-z0-9-]+|, check-[a-z0-9-]+' <<<"$help" | cut -d ' ' -f 2); do
		grep "^$target:" <<<"$output" || { echo "there is no target $target"; return 1; }
	done
}

@test "failures are named again before the last line, with the file" {
	mkdir "$tree/test/failing"
	printf '@test "two is three" {\n\t[[ 2 == 3 ]]\n}\n@test "two is two" {\n\t[[ 2 == 2 ]]\n}\n' >"$tree/test/failing/sums.bats"
	mkdir -p "$tree/build"
	in_tree test/run build failing no-such-group
	expect_status 1
	[[ $(printf '%s\n' "${lines[@]: -3:2}" | sort) == "not ok - there is no group of tests called no-such-group"$'\n'"not ok 1 two is three  (test/failing/sums.bats)" ]]
	[[ ${lines[-1]} == "1 passed, 2 failed, 0 skipped" ]]
	grep -E '^== test/failing/sums\.bats  [0-9]+ s$' <<<"$output"
	in_tree test/run build failing/sums
	[[ ${lines[-1]} == "1 passed, 1 failed, 0 skipped" ]]
	rm -r "$tree/test/failing"
}

@test "why a unit test is skipped is shown; one that ends early has failed" {
	local program=$tree/build/test/unit/skipping/skipping_test

	mkdir -p "${program%/*}"
	printf '#!/bin/sh\nprintf "1..4\\n# SKIP needs %%s\\nnot ok 1 # SKIP one\\nok 2 - two\\nok 3 # SKIP three\\n# SKIP needs more\\nok 4 - four # SKIP \\n" root; echo "umask $(umask)"\n' >"$program"
	# Nor has one that ends early, or says nothing, passed.
	printf '#!/bin/sh\nprintf "1..3\\nok 1 - one\\nok 2 - two\\n"\n' >"${program/skipping_/ending_}"
	printf '#!/bin/sh\n' >"${program/skipping_/silent_}"
	chmod 755 "$program" "${program/skipping_/ending_}" "${program/skipping_/silent_}"
	in_tree bash -c 'umask 002; test/run build unit'
	rm -r "${program%/*}"
	expect_line "umask 0022"
	expect_line "ok 1 # SKIP one: needs root  (unit: skipping/skipping)"
	expect_line "ok 3 # SKIP three  (unit: skipping/skipping)"
	expect_line "ok 4 - four # SKIP: needs more  (unit: skipping/skipping)"
	expect_line "not ok - it has 2 results, and its plan 3  (unit: skipping/ending)"
	expect_line "not ok - it has no plan  (unit: skipping/silent)"
}

@test "two files run at once, one that is tagged alone by itself, and what each says stays together" {
	local said=$BATS_TEST_TMPDIR/said name

	mkdir -p "$tree/test/pairs" "$tree/build"
	mkfifo "$said"
	# Neither ends before the other runs.
	printf '@test "writes" {\n\ttimeout 300 sh -c "echo here >%s"\n\techo "from a"\n\tfalse\n}\n' "$said" >"$tree/test/pairs/a.bats"
	printf '@test "reads" {\n\ttimeout 300 cat %s\n\techo "from b"\n\tfalse\n}\n' "$said" >"$tree/test/pairs/b.bats"
	printf '# bats file_tags=alone\n@test "sees nobody" {\n\ttouch %s\n\tsleep 0.5\n\trm %s\n}\n' "$said.0" "$said.0" >"$tree/test/pairs/alone.bats"
	for name in c d; do
		printf '@test "nor is seen" {\n\tfor i in 1 2 3; do sleep 0.1; [[ ! -e %s ]]; done\n}\n' "$said.0" >"$tree/test/pairs/$name.bats"
	done
	in_tree env JOBS=2 test/run build pairs
	expect_status 1
	[[ ${lines[-1]} == "3 passed, 2 failed, 0 skipped" ]]
	for name in a b; do
		awk -v name="$name" '/^==/ { in_it = index($2, "/" name ".bats") } in_it' <<<"$output" | grep "# from $name"
	done
	# What is stopped leaves nothing that runs. Others on this machine wait for another number of seconds.
	long=$((100000 + BASHPID))
	printf '@test "waits" {\n\tsleep %d\n}\n' "$long" | tee "$tree/test/pairs/a.bats" >"$tree/test/pairs/b.bats"
	in_tree timeout 300 bash -c 'test/run build pairs & until [[ $(pgrep -c -f "^sleep $0\$") == 2 ]]; do sleep 0.1; done
		kill "$!"; wait "$!"; echo "status $?"; for i in {1..600}; do pgrep -f "^sleep $0\$" >/dev/null || break; sleep 0.1; done; pgrep -f "^sleep $0\$" || echo "nothing runs"' "$long"
	expect_line "status 130"
	expect_line "nothing runs"
	rm -r "$tree/test/pairs"
}

@test "fuzzers run beside other groups, with what these leave of the processors" {
	local fuzzers=$tree/build/libfuzzer/fuzz begun=$BATS_TEST_TMPDIR/begun

	mkfifo "$begun"
	mkdir -p "$tree/test/quick" "$fuzzers"
	printf '@test "one is one" {\n\tread -r nice <%s\n\t[[ $nice == 19 || $nice -gt $(nice) ]]\n}\n' "$begun" >"$tree/test/quick/sums.bats"
	printf '#!/bin/sh\ntimeout 300 sh -c "nice >%s"\n' "$begun" >"$fuzzers/span_fuzz"
	chmod +x "$fuzzers/span_fuzz"
	in_tree timeout 600 test/run build fuzz quick
	expect_status 0
	expect "== fuzz  "
	[[ ${lines[-1]} == "2 passed, 0 failed, 0 skipped" ]]
	printf '#!/bin/sh\ntimeout 300 sh -c "nice >%s"\nexit 77\n' "$begun" >"$fuzzers/span_fuzz"
	in_tree test/run build fuzz quick
	expect_status 1
	expect "not ok 1 - span_fuzz: see below"
	[[ ${lines[-1]} == "1 passed, 1 failed, 0 skipped" ]]
	rm -r "$tree/test/quick" "$fuzzers"
}
