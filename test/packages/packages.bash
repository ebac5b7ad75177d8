# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# The Debian packages of this build, for bats files of this folder: $CTR_GPU_PACKAGES, or where make deb puts them. Those of the oldest
# release serve all of them.

debs=${CTR_GPU_PACKAGES:-$CTR_GPU_BUILD/deb}

# raise DEB NEW [SUFFIX]: as a later release would be, the same files with "+next" behind its version, and that of its sisters where it
# depends on them
raise() {
	local tree=$BATS_FILE_TMPDIR/raise version

	rm -rf "$tree"
	dpkg-deb -R "$1" "$tree"
	version=$(dpkg-deb -f "$1" Version)
	sed -i "s/$version/$version+${3:-next}/" "$tree/DEBIAN/control"
	dpkg-deb --root-owner-group -Znone -b "$tree" "$2" >/dev/null
}
