// What a C++ program sees of the library on any machine. Whatever throws is caught, and each owner gives back what it owns.
#include "cuinstr.hpp"
#include <cassert>
#include <cstdio>
#include <cstring>
#include <type_traits>

static_assert(!std::is_copy_constructible<cuinstr::guard>::value && std::is_move_constructible<cuinstr::guard>::value, "");
static_assert(!std::is_copy_constructible<cuinstr::module>::value && std::is_move_constructible<cuinstr::module>::value, "");
static_assert(std::is_copy_constructible<cuinstr::outcome>::value, "an outcome keeps its texts alive");

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

// Never called: it must compile.
bool guarded(CUmod_st *cu_module, CUstream_st *stream) {
    cuinstr::module module = cuinstr::module::of(cu_module);
    cuinstr::guard guard(module, stream, std::chrono::milliseconds(5));
    cuinstr_limits limits = cuinstr::timeout(std::chrono::seconds(2));
    limits.flags |= CUINSTR_COUNT_FUEL;
    cuinstr::guard other(module, stream, limits);
    guard = std::move(other);
    guard.launched();
    guard.cancel();
    if (std::unique_ptr<cuinstr::outcome> early = guard.wait_for(std::chrono::milliseconds(1))) return early->completed();
    cuinstr::outcome outcome = guard.wait();
    return outcome.stopped() && !outcome.faulted() && outcome->line > 0 && std::strlen(outcome.report()) + std::strlen(outcome.json()) > 0;
}

int main() {
    cuinstr::rewritten rewritten("__global__ void wait(volatile int* flag) { while (*flag == 0) { } }\n", "wait.cu");
    assert(rewritten.text().find("#line 1 \"wait.cu\"") != std::string::npos);
    cuinstr::rewritten moved(std::move(rewritten));
    assert(moved.sites().find("\"kind\":\"while\"") != std::string::npos && moved.diagnostics().empty());
    assert(thrown([&] { rewritten.text(); }) == CUINSTR_BAD_HANDLE);
    assert(thrown([&] { cuinstr::rewritten again(moved.text()); }) == CUINSTR_REFUSED);
    assert(thrown([] { cuinstr::module::of(static_cast<CUmod_st *>(nullptr)); }) == CUINSTR_BAD_HANDLE);
    assert(thrown([] { cuinstr::module::of_control(nullptr); }) == CUINSTR_BAD_HANDLE);
    std::puts("all as it should be");
}
