/* SPDX-License-Identifier: Apache-2.0 */

/* A runtime that does nothing, to measure what stands in front of it. */

int main(void)
{
	return 0;
}
