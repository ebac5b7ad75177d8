/* SPDX-License-Identifier: Apache-2.0 */

/* The note that a real libcuda carries, with the CUDA version in JSON. Drivers of before 2022 have none. */
#ifdef CUDA_NOTE
	.section .note.cuda.fwd_compatibility, "a", @note
	.balign 4
	.long 2f - 1f, 4f - 3f, 0
1:	.asciz "NVIDIA Corporation"
2:	.balign 4
3:	.ascii "{\"format\":1,\"CUDA version\":\"" CUDA_NOTE "\",\"driver\":[535,550,580],\"device\":[7,8,9]}"
4:	.balign 4
#endif
	.section .note.GNU-stack, "", @progbits
