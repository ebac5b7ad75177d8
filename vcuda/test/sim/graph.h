/* SPDX-License-Identifier: Apache-2.0 */

/* Graphs, for those who make them: calls, and the capture of a stream. */

#ifndef VCUDA_TEST_SIM_GRAPH_H
#define VCUDA_TEST_SIM_GRAPH_H

#include "sim.h"

enum { CONDITION_GRAPHS = 8 };

struct CUgraphNode_st {
	struct object object;
	CUgraph graph;
	enum node_type type;
	struct work *work;
	size_t size;
	CUgraphNode *dependencies;
	size_t dependency_count;
	CUgraphNode origin; /* of a clone: what it was made of */
	CUgraph child;
	CUevent event;
	CUDA_KERNEL_NODE_PARAMS kernel;
	void *pointers[SIM_PARAMETERS_MAX];
	CUDA_MEMSET_NODE_PARAMS fill;
	CUDA_MEMCPY3D copy;
	bool done, disabled;
	/* Graphs that it runs on a condition, and by which value of which. */
	CUgraph graphs[CONDITION_GRAPHS];
	unsigned graph_count, condition;
	int condition_type;
	CUdeviceptr pointer; /* that is freed */
	CUstreamAttrValue attributes[16];
};

struct CUgraph_st {
	struct object object;
	CUgraphNode *nodes;
	size_t count;
	bool owned; /* by an executable or a node: no handle of the caller's */
	struct kept {
		CUuserObject object;
		unsigned count;
	} * kept;
	size_t kept_count;
};

/* What a graph keeps of the program's, when it is copied, and when it ends. */
void user_object_copy(CUgraph to, CUgraph from);
void user_object_forget(CUgraph graph);

CUgraph graph_new(void);
CUresult graph_check(CUgraph graph, const CUgraphNode *dependencies, size_t count);
/* The graph of the node that its condition has run now; NULL: none. */
CUgraph condition_chosen(CUgraphNode node);
/* The graph owns the work from then on. */
CUgraphNode graph_add(CUgraph graph, enum node_type type, struct work *work, size_t size,
		      const CUgraphNode *dependencies, size_t count);
void graph_free(CUgraph graph);
void graph_free_work(CUgraphNode node);
bool graph_is_node(CUgraphNode node, enum node_type type);
/* What a node of the graph became in an executable one, if it is of that type. */
CUgraphNode graph_in_exec(CUgraphExec exec, CUgraphNode node, enum node_type type);
bool graph_follows(CUgraphNode later, CUgraphNode earlier);

#endif
