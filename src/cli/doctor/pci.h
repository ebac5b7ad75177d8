/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* GPUs on this machine's PCI bus, whatever drives them. */

enum { PCI_TEXT_SIZE = 64 };

/* The first of each sort, as a user would recognise it; "" if there is none. */
struct pci_gpus {
	char nvidia[PCI_TEXT_SIZE];        /* "an NVIDIA GPU (PCI 0000:01:00.0)" */
	char nvidia_driver[PCI_TEXT_SIZE]; /* what drives it */
	char paravirtual[PCI_TEXT_SIZE];   /* address of a function behind which Hyper-V offers an adapter */
	char other[PCI_TEXT_SIZE];
};

void pci_find_gpus(struct pci_gpus *ret);
