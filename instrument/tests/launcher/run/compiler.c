/* Stands in for NVRTC and for nvJitLink: what it gives as machine code is none, but the stand-in for the driver takes it for that. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef void* handle;
static const unsigned char cubin[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1, 0x33, 7, [18] = 190, [40] = 64, [54] = 56, [58] = 64};
static const char ptx[] = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry spin() {\n$L: bra $L;\n}\n";
int nvrtcCreateProgram(handle* program, const char* source, const char* name, int count, void* a, void* b) { return *program = (handle)8, 0; }
int nvrtcCompileProgram(handle program, int count, const char** options) { return 0; }
int nvrtcGetCUBIN(handle program, char* place) { return memcpy(place, cubin, sizeof cubin), 0; }
int nvrtcGetPTXSize(handle program, size_t* size) { return *size = sizeof ptx, 0; }
int nvrtcGetPTX(handle program, char* place) { return memcpy(place, ptx, sizeof ptx), 0; }

struct link { int to_ptx, has_input; };
int nvJitLinkCreate(handle* link, unsigned count, const char** options) {
  struct link* made = calloc(1, sizeof *made);
  for (unsigned at = 0; at < count; ++at) made->to_ptx |= !strcmp(options[at], "-ptx");
  return *link = made, 0;
}
int __nvJitLinkCreate_12_4(handle* link, unsigned count, const char** options) { return nvJitLinkCreate(link, count, options); }
int nvJitLinkAddData(struct link* link, int kind, const char* data, size_t size, const char* name) {
  char* text = calloc(size + 1, 1);
  memcpy(text, data, size);
  if (kind == 2) printf("given PTX %s polls\n", strstr(text, "cuinstr_control_v1") ? "with" : "without");
  link->has_input = kind == 3 && !strcmp(text, "intermediate code") && !strcmp(name, "input");
  free(text);
  return 0;
}
int nvJitLinkComplete(struct link* link) { return 0; }
int nvJitLinkGetLinkedCubin(struct link* link, char* place) { return memcpy(place, cubin, sizeof cubin), 0; }
int nvJitLinkGetLinkedPtxSize(struct link* link, size_t* size) { return *size = sizeof ptx, !link->to_ptx || !link->has_input; }
int nvJitLinkGetLinkedPtx(struct link* link, char* place) { return memcpy(place, ptx, sizeof ptx), 0; }
int nvJitLinkDestroy(struct link** link) { return free(*link), *link = 0, 0; }
