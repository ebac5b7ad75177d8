/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the generator can print, each a file. */

void api_print_ops(void);
void api_print_all(void);
void api_print_driver(void);
void api_print_refused(void);
void stub_print_all(void);
void entry_print_all(void);
void case_print_all(void);
void check_print_cuda(void);
void check_print_nvml(void);
