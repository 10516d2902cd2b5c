// Runs the programs of a batch, each with several arguments, and prints a line a run:
//   SEED SET WHAT STATUS HASH TICKS EDGES LOOKS GAP FUEL
// WHAT is `whole`, `fuel` or `raise` with a number; STATUS is `end`, `cut` (the budget of iterations is used up), `undefined` (the program's
// behaviour is), `left` with the reason, or `late` (it went on after a poll that said stop).
#include "arguments.h"
#include "device.h"

#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/time.h>
#include <unistd.h>

namespace {

enum Status { End, Cut, Undefined, Left, Late };
const char* const names[] = {"end", "cut", "undefined", "left", "late"};

sigjmp_buf way_out;
const host_program* program;
unsigned int set;
const char* what = "whole";
unsigned long long number;

unsigned long long hash, ticks, edges, looks, clock_ns, gap, largest_gap, clock_state;
// Where to stop: the edge that a thread without fuel can't take, the look that finds the flag raised.
unsigned long long last_edge, raised_look;
unsigned int why;
int clock_pace;
const unsigned int* flag;

void mix(unsigned long long value) { hash = mixed(hash, value); }

[[noreturn]] void out(Status status) { siglongjmp(way_out, 1 + status); }

bool is_raised() { return raised_look != 0 && looks >= raised_look; }

// The program's own budget or hang: what hangs is named, then the process ends.
void hangs(int signal) {
  char text[160];
  const char* kind = signal == SIGVTALRM ? "hangs" : "crashes";
  const int length = snprintf(text, sizeof text, "\n%llu %u %s %llu %s 0 0 0 0 0 0\n", program->seed, set, what, number, kind);
  fflush(stdout);
  if (write(1, text, (size_t)length) < 0) _exit(4);
  _exit(3);
}
void is_undefined(int) { siglongjmp(way_out, 1 + Undefined); }

struct Run {
  Status status;
  unsigned int why;
  unsigned long long hash, ticks, edges, looks, gap, fuel;
};

int memory[64];

Run run(unsigned long long fuel, unsigned long long edge, unsigned long long look) {
  hash = first_hash;
  ticks = edges = looks = gap = largest_gap = 0;
  last_edge = edge;
  raised_look = look;
  why = 0;
  clock_state = program->seed ^ (set * 0x9e37ull);
  clock_ns = 1000;
  clock_pace = (int)(next_random(clock_state) % 4);
  // One is the number of a launch that nobody armed, which runs for longer before it first looks.
  host_arm(1u + (unsigned int)((program->seed + set) % 2), fuel);
  flag = host_flag();
  const host_arguments given = arguments(program->seed, set, memory);
  const itimerval limit = {{0, 0}, {20, 0}};
  setitimer(ITIMER_VIRTUAL, &limit, nullptr);
  volatile int came = sigsetjmp(way_out, 0);
  if (came == 0) {
    program->run(given);
    came = 1 + End;
  }
  for (const int word : memory) mix((unsigned int)word);
  const Status status = (Status)(came - 1);
  return {status, why, hash, ticks, edges, looks, largest_gap, status == End ? host_fuel_used() : 0};
}

void print(const Run& run) {
  printf("%llu %u %s %llu %s%u %llx %llu %llu %llu %llu %llu\n", program->seed, set, what, number, names[run.status], run.why, run.hash, run.ticks, run.edges,
         run.looks, run.gap, run.fuel);
}

// A few numbers from 1 to `most`, both ends among them.
unsigned int choose(unsigned long long most, unsigned long long (&chosen)[3]) {
  if (most == 0) return 0;
  unsigned long long state = program->seed + set;
  chosen[0] = 1 + next_random(state) % most;
  chosen[1] = most;
  chosen[2] = most > 1 ? most - 1 : 1;
  return most == 1 ? 1 : most == 2 ? 2 : 3;
}

constexpr unsigned long long counted = (1ull << 40) - 2;

}  // namespace

void host_tick(unsigned int site) {
  if (is_raised()) out(Late);
  if (ticks == program->budget) out(Cut);
  ++ticks;
  mix(site * 2 + 1);
  if (host_is_rewritten && program->polled[site]) {
    ++gap;
    if (gap > largest_gap) largest_gap = gap;
  }
}
void host_put(unsigned int place, unsigned long long value) {
  if (is_raised()) out(Late);
  mix(place * 2);
  mix(value);
}
// In the plain program each back edge stands here, so that the place where fuel ends is known without any rewriting.
void host_edge() {
  if (edges == last_edge) {
    why = 4;
    out(Left);
  }
  ++edges;
}
unsigned int host_look(const unsigned int* word) {
  if (word != flag) return *word;
  if (is_raised()) out(Late);
  ++looks;
  gap = 0;
  return is_raised() ? host_launch() : *word;
}
// Four clocks: one that hardly moves, so that paces grow; one that leaps, so that they fall; two in between.
unsigned long long host_now() {
  const unsigned long long most[] = {64, 1ull << 22, 40000, 20000};
  clock_ns += 32 * (1 + next_random(clock_state) % (most[clock_pace] / 32));
  return clock_ns;
}
void host_stop(unsigned long long, unsigned int reason) { why = reason; }
void host_leave() { out(Left); }

// Arguments: sets a program is run with; then for rewritten programs a file with the lines that the plain ones printed.
int main(int count, char** values) {
  const unsigned int sets = count > 1 ? (unsigned int)atoi(values[1]) : 4;
  static char stack[1 << 16];
  stack_t other = {};
  other.ss_sp = stack;
  other.ss_size = sizeof stack;
  sigaltstack(&other, nullptr);
  struct sigaction action = {};
  action.sa_flags = SA_NODEFER | SA_ONSTACK;
  action.sa_handler = hangs;
  const int fatal[] = {SIGVTALRM, SIGSEGV, SIGBUS, SIGFPE, SIGABRT};
  for (const int signal : fatal) sigaction(signal, &action, nullptr);
  action.sa_flags = SA_NODEFER;
  action.sa_handler = is_undefined;
  sigaction(SIGILL, &action, nullptr);
  FILE* plain = count > 2 ? fopen(values[2], "r") : nullptr;
  if (host_is_rewritten != (plain != nullptr)) return 5;

  for (unsigned int index = 0; index < host_program_count; ++index) {
    program = &host_programs[index];
    for (set = 0; set < sets; ++set) {
      unsigned long long total = 0;
      bool is_undefined = false;
      if (plain != nullptr) {
        // The line of the plain program's whole run, among those of its other runs.
        char line[256], status[32];
        unsigned long long seed = 0;
        unsigned int its_set = 0;
        bool found = false;
        while (!found && fgets(line, sizeof line, plain) != nullptr) {
          found = sscanf(line, "%llu %u whole 0 %31s %*s %*s %llu", &seed, &its_set, status, &total) == 4 && seed == program->seed && its_set == set;
        }
        if (!found) return 6;
        is_undefined = strncmp(status, "undefined", 9) == 0;
      }
      if (is_undefined) continue;
      what = "whole";
      number = 0;
      const Run whole = run(host_has_fuel ? counted : 0, ~0ull, 0);
      print(whole);
      if (!host_is_rewritten) total = whole.edges;
      unsigned long long chosen[3];
      if (!host_is_rewritten || host_has_fuel) {
        const unsigned int runs = whole.status == Undefined ? 0 : choose(total, chosen);
        what = "fuel";
        for (unsigned int at = 0; at < runs; ++at) {
          number = chosen[at];
          print(run(number, number, 0));
        }
      } else {
        // A kernel in which nothing polls reads the flag once, where it begins, and obeys it where it ends.
        const unsigned int runs = whole.status == End && whole.looks == 1 ? 0 : choose(whole.looks, chosen);
        what = "raise";
        for (unsigned int at = 0; at < runs; ++at) {
          number = chosen[at];
          print(run(0, ~0ull, number));
        }
      }
    }
  }
  printf("done\n");
  return 0;
}
