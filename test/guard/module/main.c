// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only

/* The device: /dev/dxg, for everyone. */

#include <linux/miscdevice.h>
#include <linux/module.h>

#include "dxgkrnl.h"

/* A host that has no adapter for this machine has no process for it, either. */
static int dxgk_open(struct inode *inode, struct file *f)
{
	if (dxgadapter_count == 0)
		return -EBADF;
	f->private_data = dxgprocess_open();
	return f->private_data ? 0 : -EBADF;
}

static int dxgk_release(struct inode *inode, struct file *f)
{
	dxgprocess_close(f->private_data);
	return 0;
}

static const struct file_operations dxgk_fops = {
	.owner = THIS_MODULE,
	.open = dxgk_open,
	.release = dxgk_release,
	.compat_ioctl = dxgk_compat_ioctl,
	.unlocked_ioctl = dxgk_unlocked_ioctl,
};

static struct miscdevice dxgk_device = {.minor = MISC_DYNAMIC_MINOR, .name = "dxg", .mode = 0666, .fops = &dxgk_fops};

static int __init dxgk_init(void)
{
	int r = dxgadapters_init();

	if (r)
		return r;
	r = dxgvmb_init();
	if (r) {
		dxgadapters_free();
		return r;
	}
	r = misc_register(&dxgk_device);
	if (r) {
		dxgvmb_exit();
		dxgadapters_free();
	}
	return r;
}

static void __exit dxgk_exit(void)
{
	misc_deregister(&dxgk_device);
	dxgvmb_exit();
	dxgadapters_free();
}

module_init(dxgk_init);
module_exit(dxgk_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A stand-in for dxgkrnl, for tests");
