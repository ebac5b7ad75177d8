# SPDX-License-Identifier: Apache-2.0
#
# check-clusters: what places containers and jobs on several machines, as far as it runs on one: Slurm of this distribution.

nightly_groups += clusters
nightly_dependencies += check-clusters

check-clusters: dependencies-check-clusters
	$(MAKE) check-clusters-only

check-clusters-only: all test-programs
	test/run $(O) clusters

.PHONY: check-clusters check-clusters-only
