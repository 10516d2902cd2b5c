// SPDX-License-Identifier: 0BSD
// Inserted by cuinstr (https://github.com/cuinstr/cuinstr). This text may land in anybody's source, without conditions.
#ifndef __cuinstr_settings_v1
#define __cuinstr_settings_v1
// What is compiled in for hosts that arm nothing. 0 stands for no limit.
#define __cuinstr_timeout_ns @TIMEOUT_NS@ull
#define __cuinstr_budget_cycles @BUDGET_CYCLES@ull
#define __cuinstr_fuel @FUEL@ull
#define __cuinstr_gate @GATE@
// What this file does with shared memory: barriers, marks in global memory, sizes that the launch says.
#define __cuinstr_file_barriers @BARRIERS@
#define __cuinstr_file_global_marks @GLOBAL_MARKS@
#define __cuinstr_file_dynamic @DYNAMIC@
// Whether its classes may have tables of virtual functions.
#define __cuinstr_file_virtuals @VIRTUALS@
// Whether blocks can decline to run.
#define __cuinstr_file_pausable @PAUSABLE@
// The time between two looks: the first allowance as a power of two, how many units are too few to cut a loop into, and units of 1024 ns.
#define __cuinstr_file_first_pace @FIRST_PACE@u
#define __cuinstr_file_short @SHORT@u
#define __cuinstr_gap @GAP@u
#endif
