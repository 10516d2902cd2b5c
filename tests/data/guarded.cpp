// A C++ host over the stand-in driver: guards that are waited for, moved from, and let go of.
#include "cuinstr.hpp"
#include <cassert>
#include <chrono>
#include <cstdio>
#include <cstring>

// The driver's functions, as cuda.h declares them.
extern "C" {
int cuDevicePrimaryCtxRetain(void **, int);
int cuCtxSetCurrent(void *);
int cuModuleLoadData(CUmod_st **, const void *);
int cuModuleGetFunction(CUfunc_st **, CUmod_st *, const char *);
int cuStreamCreate(CUstream_st **, unsigned);
int cuLaunchKernel(CUfunc_st *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream_st *, void **, void **);
long cuinstr_stand_in(const char *);
}

static const char ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .global .align 8 .b8 cuinstr_control_v1[1192];\n.visible .global .align 4 .u32 cuinstr_flag_v1;\n"
    ".visible .entry spin() { ret; }\n.visible .entry deaf() { ret; }\n";

#define WORKS(call) \
    if ((call) != 0) return std::fprintf(stderr, "%s failed\n", #call), 1

template <typename Call>
static cuinstr_status thrown(Call call) {
    try {
        call();
    } catch (const cuinstr::error &error) {
        assert(std::strlen(error.what()) > 0);
        return error.status();
    }
    return CUINSTR_OK;
}

int main() {
    void *context = nullptr;
    CUmod_st *cu_module = nullptr;
    CUfunc_st *spin = nullptr, *deaf = nullptr;
    CUstream_st *stream = nullptr;
    WORKS(cuDevicePrimaryCtxRetain(&context, 0));
    WORKS(cuCtxSetCurrent(context));
    WORKS(cuModuleLoadData(&cu_module, ptx));
    WORKS(cuModuleGetFunction(&spin, cu_module, "spin"));
    WORKS(cuModuleGetFunction(&deaf, cu_module, "deaf"));
    WORKS(cuStreamCreate(&stream, 1));
    cuinstr::module module = cuinstr::module::of(cu_module);

    cuinstr::guard first(module, stream, std::chrono::milliseconds(20));
    WORKS(cuLaunchKernel(spin, 2, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr));
    cuinstr::guard guard(std::move(first));
    cuinstr::outcome outcome = guard.wait();
    assert(outcome.stopped() && outcome->cause == CUINSTR_DEADLINE && outcome->threads == 64);

    // What was moved from says so, and nothing else happens.
    assert(first.get().id == 0);
    assert(thrown([&] { first.launched(); }) == CUINSTR_BAD_HANDLE);
    assert(thrown([&] { first.wait(); }) == CUINSTR_BAD_HANDLE);
    assert(thrown([&] { first.wait_for(std::chrono::seconds(1)); }) == CUINSTR_BAD_HANDLE);
    assert(thrown([&] { first.cancel(); }) == CUINSTR_BAD_HANDLE);
    // It can be given another one, whose launch nobody has told of yet.
    first = cuinstr::guard(module, stream, std::chrono::milliseconds(20));
    WORKS(cuLaunchKernel(spin, 2, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr));
    assert(first.wait().stopped());

    // A kernel that does not leave costs one grace time at most.
    cuinstr_limits limits = CUINSTR_LIMITS_INIT;
    limits.flags = CUINSTR_UNTIL_CANCELLED;
    limits.grace_ns = 400000000;
    const auto since = [] { return std::chrono::steady_clock::now(); };
    auto begin = since();
    {
        cuinstr::guard held(module, stream, limits);
        WORKS(cuLaunchKernel(deaf, 1, 1, 1, 32, 1, 1, 0, stream, nullptr, nullptr));
        while (cuinstr_stand_in("running") == 0) {
        }
        held.launched();
        begin = since();
    }
    assert(since() - begin < std::chrono::milliseconds(600));
    cuinstr_stand_in("end");
    std::puts("all as it should be");
}
