// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only

/*
 * The way to the host: a message, and a wait for its answer that a fatal signal ends. The real driver then frees the packet that the
 * answer will be written to, which is why nobody may be killed in the middle of a call; here such packets are counted, and
 * freed by whoever is last.
 */

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "dxgkrnl.h"

struct dxgvmbuspacket {
	struct delayed_work answer;
	struct completion wait;
	struct kref kref;
	struct list_head place;
};

static unsigned int host_delay;
module_param(host_delay, uint, 0644);
MODULE_PARM_DESC(host_delay, "milliseconds that the host takes to answer");

static atomic_t abandoned_count;

static int print_abandoned(char *buffer, const struct kernel_param *parameter)
{
	return scnprintf(buffer, PAGE_SIZE, "%d\n", atomic_read(&abandoned_count));
}

static const struct kernel_param_ops abandoned_ops = {.get = print_abandoned};
module_param_cb(abandoned, &abandoned_ops, NULL, 0444);
MODULE_PARM_DESC(abandoned, "packets whose sender was killed while it waited");

static struct workqueue_struct *host;
static LIST_HEAD(unanswered);
static DEFINE_SPINLOCK(unanswered_lock);

static void packet_release(struct kref *kref)
{
	kfree(container_of(kref, struct dxgvmbuspacket, kref));
}

static void host_answers(struct work_struct *work)
{
	struct dxgvmbuspacket *packet = container_of(to_delayed_work(work), struct dxgvmbuspacket, answer);

	spin_lock(&unanswered_lock);
	list_del(&packet->place);
	spin_unlock(&unanswered_lock);
	complete(&packet->wait);
	kref_put(&packet->kref, packet_release);
}

int dxgvmb_init(void)
{
	host = alloc_workqueue("dxg-host", WQ_UNBOUND, 0);
	return host ? 0 : -ENOMEM;
}

static struct dxgvmbuspacket *packet_find_unanswered(void)
{
	struct dxgvmbuspacket *packet;

	spin_lock(&unanswered_lock);
	packet = list_first_entry_or_null(&unanswered, struct dxgvmbuspacket, place);
	if (packet)
		kref_get(&packet->kref);
	spin_unlock(&unanswered_lock);
	return packet;
}

/* What was abandoned is answered, too, before the queue is gone. */
void dxgvmb_exit(void)
{
	struct dxgvmbuspacket *packet;

	while ((packet = packet_find_unanswered())) {
		flush_delayed_work(&packet->answer);
		kref_put(&packet->kref, packet_release);
	}
	destroy_workqueue(host);
}

noinline int dxgvmb_send_sync_msg(struct dxgadapter *adapter)
{
	struct dxgvmbuspacket *packet = kzalloc(sizeof(*packet), GFP_KERNEL);
	int r;

	if (!packet)
		return -ENOMEM;
	atomic64_inc(&adapter->messages);
	init_completion(&packet->wait);
	kref_init(&packet->kref);
	kref_get(&packet->kref);
	INIT_DELAYED_WORK(&packet->answer, host_answers);
	spin_lock(&unanswered_lock);
	list_add_tail(&packet->place, &unanswered);
	spin_unlock(&unanswered_lock);
	queue_delayed_work(host, &packet->answer, msecs_to_jiffies(host_delay));
	r = wait_for_completion_killable(&packet->wait);
	if (r)
		atomic_inc(&abandoned_count);
	kref_put(&packet->kref, packet_release);
	return r;
}

noinline int dxgvmb_send_query_adapter_info(struct dxgprocess *process, struct dxgadapter *adapter,
					    struct d3dkmt_queryadapterinfo *args)
{
	void __user *user = (void __user *)(uintptr_t)args->private_data;
	void *data = kvzalloc(args->private_data_size, GFP_KERNEL);
	int r;

	if (!data)
		return -ENOMEM;
	r = copy_from_user(data, user, args->private_data_size) ? -EFAULT : 0;
	if (!r)
		r = dxgvmb_send_sync_msg(adapter);
	if (!r)
		r = dxgadapter_answer(adapter, args->type, data, args->private_data_size);
	if (!r && copy_to_user(user, data, args->private_data_size))
		r = -EFAULT;
	kvfree(data);
	return r;
}

noinline int dxgvmb_send_query_statistics(struct d3dkmthandle host_process_handle, struct dxgadapter *adapter,
					  struct d3dkmt_querystatistics *args)
{
	int r = dxgvmb_send_sync_msg(adapter);

	if (r)
		return r;
	memset(args->result, 0, sizeof(args->result));
	/* Something to know the adapter by. */
	memcpy(args->result, &adapter->luid, sizeof(adapter->luid));
	return 0;
}
