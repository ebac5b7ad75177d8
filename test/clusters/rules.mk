# SPDX-License-Identifier: Apache-2.0
#
# check-clusters: what places containers and jobs on several machines, as far as it runs on one: Slurm of this distribution and of sid, and
# Kubernetes, which test/clusters/kubernetes-build builds of Debian 12's source package once and keeps below $CTR_GPU_KUBERNETES
# (/var/cache/ctr-gpu-kubernetes), with containerd of this and of later releases. Wants a mirror of Debian. $CTR_GPU_TEST_KILLS: how often its programs are killed, 50 times.

nightly_groups += clusters
nightly_dependencies += check-clusters

unified = $(O)/test/clusters/unified.so
test_programs += $(unified)

$(unified): test/clusters/unified.c
	@mkdir -p $(@D)
	$(say) CC $@
	$(CC) -std=gnu17 $(OPTIMIZE) -g -D_GNU_SOURCE $(warnings) -fPIC -shared -o $@ $<

check-clusters: dependencies-check-clusters
	$(MAKE) check-clusters-only

check-clusters-only: all test-programs kubernetes-image
	CTR_GPU_TEST_TIMEOUT=$${CTR_GPU_TEST_TIMEOUT:-7200} test/run $(O) clusters

.PHONY: check-clusters check-clusters-only
