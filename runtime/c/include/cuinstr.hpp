// cuinstr for C++11 and later: owners of the handles of cuinstr.h, whose rules hold here, too. Header only; link with libcuinstr.
//
//     cuinstr::module module = cuinstr::module::of(cu_module);
//     cuinstr::guard guard(module, stream, std::chrono::seconds(2));
//     kernel<<<grid, block, 0, stream>>>(...);
//     cuinstr::outcome outcome = guard.wait();
//     if (outcome.stopped()) std::puts(outcome.report());
//
// What fails throws cuinstr::error, with the message and the status. Nothing else throws but std::bad_alloc.
//
// Licensed under MIT or Apache-2.0, at your option.
#ifndef CUINSTR_HPP
#define CUINSTR_HPP

#include "cuinstr.h"

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace cuinstr {

// A call that did not do what was asked.
class error : public std::runtime_error {
public:
    error(cuinstr_status status, const char *message) : std::runtime_error(message), status_(status) {}
    cuinstr_status status() const noexcept { return status_; }

private:
    cuinstr_status status_;
};

namespace detail {

inline void check(cuinstr_status status) {
    if (status != CUINSTR_OK) throw error(status, cuinstr_message());
}

// Owns a handle, and gives it back at its end.
template <typename Handle, cuinstr_status (*Release)(Handle)>
class owner {
public:
    owner() noexcept : handle_{0} {}
    explicit owner(Handle handle) noexcept : handle_(handle) {}
    owner(owner &&other) noexcept : handle_(other.handle_) { other.handle_.id = 0; }
    owner &operator=(owner &&other) noexcept {
        std::swap(handle_, other.handle_);
        return *this;
    }
    owner(const owner &) = delete;
    owner &operator=(const owner &) = delete;
    ~owner() {
        if (handle_.id != 0) Release(handle_);
    }
    Handle get() const noexcept { return handle_; }

private:
    Handle handle_;
};

using rewritten_owner = owner<cuinstr_rewritten, cuinstr_rewritten_release>;
using module_owner = owner<cuinstr_module, cuinstr_detach>;
// A guard, and whether its launch was made. What is moved takes both along.
struct guard_owner : owner<cuinstr_guard, cuinstr_release> {
    using owner::owner;
    bool is_launched = false;
};

// A wait in pieces of a second, whose end the library bounds.
constexpr uint64_t piece_ns = 1000000000u;

inline uint64_t ns(std::chrono::nanoseconds duration) { return duration.count() < 0 ? 0u : static_cast<uint64_t>(duration.count()); }

}  // namespace detail

// Limits of a guard, with the names of cuinstr_limits.
inline cuinstr_limits timeout(std::chrono::nanoseconds timeout) {
    cuinstr_limits limits = CUINSTR_LIMITS_INIT;
    limits.timeout_ns = detail::ns(timeout);
    return limits;
}

// A source that was rewritten.
class rewritten {
public:
    explicit rewritten(const std::string &source, const char *path = nullptr) {
        cuinstr_rewrite_options options = CUINSTR_REWRITE_OPTIONS_INIT;
        options.path = path;
        *this = rewritten(source, options);
    }
    rewritten(const std::string &source, const cuinstr_rewrite_options &options) {
        cuinstr_rewritten handle;
        detail::check(cuinstr_rewrite(source.data(), source.size(), &options, &handle));
        handle_ = detail::rewritten_owner(handle);
    }
    // Polls are put into PTX.
    static rewritten ptx(const std::string &ptx, const cuinstr_rewrite_options &options = CUINSTR_REWRITE_OPTIONS_INIT) {
        cuinstr_rewritten handle;
        detail::check(cuinstr_rewrite_ptx(ptx.data(), ptx.size(), &options, &handle));
        rewritten made;
        made.handle_ = detail::rewritten_owner(handle);
        return made;
    }
    std::string text() const { return read(cuinstr_rewritten_text); }
    std::string sites() const { return read(cuinstr_rewritten_sites); }
    std::string diagnostics() const { return read(cuinstr_rewritten_diagnostics); }

private:
    rewritten() = default;
    std::string read(cuinstr_status (*call)(cuinstr_rewritten, const char **, size_t *)) const {
        const char *text = nullptr;
        size_t length = 0;
        detail::check(call(handle_.get(), &text, &length));
        return std::string(text, length);
    }
    detail::rewritten_owner handle_;
};

// A rewritten module that the caller has loaded in the current context, and keeps loaded.
class module {
public:
    static module of(CUmod_st *cu_module, const cuinstr_about *about = nullptr) { return attach(cuinstr_attach_module, cu_module, about); }
    static module of(CUlib_st *cu_library, const cuinstr_about *about = nullptr) { return attach(cuinstr_attach_library, cu_library, about); }
    static module of(CUfunc_st *cu_function, const cuinstr_about *about = nullptr) {
        return attach(cuinstr_attach_function, cu_function, about);
    }
    static module of(CUkern_st *cu_kernel, const cuinstr_about *about = nullptr) { return attach(cuinstr_attach_kernel, cu_kernel, about); }
    // The device address of cuinstr_control_v1.
    static module of_control(const void *address, const cuinstr_about *about = nullptr) {
        return attach(cuinstr_attach_control, static_cast<uint64_t>(reinterpret_cast<uintptr_t>(address)), about);
    }
#ifdef CUDART_VERSION
    // The module of a kernel of the CUDA runtime, as it is launched: of_kernel(halve), of_kernel(gemm<float>).
    template <typename... Arguments>
    static module of_kernel(void (*kernel)(Arguments...), const cuinstr_about *about = nullptr) {
        cudaFunction_t function = nullptr;
        const cudaError_t status = cudaGetFuncBySymbol(&function, reinterpret_cast<const void *>(kernel));
        if (status != cudaSuccess) throw error(CUINSTR_DRIVER_ERROR, cudaGetErrorString(status));
        return of(function, about);
    }
#endif
    cuinstr_module get() const noexcept { return handle_.get(); }

private:
    explicit module(cuinstr_module handle) : handle_(handle) {}
    template <typename Call, typename Handle>
    static module attach(Call call, Handle handle, const cuinstr_about *about) {
        cuinstr_module attached;
        detail::check(call(handle, about, &attached));
        return module(attached);
    }
    detail::module_owner handle_;
};

// How a launch ended. Keeps its texts alive.
class outcome {
public:
    bool completed() const noexcept { return told_.kind == CUINSTR_COMPLETED; }
    bool stopped() const noexcept { return told_.kind == CUINSTR_STOPPED; }
    bool faulted() const noexcept { return told_.kind == CUINSTR_FAULTED; }
    const char *report() const noexcept { return told_.report; }
    const char *json() const noexcept { return told_.json; }
    // All of it.
    const cuinstr_outcome &operator*() const noexcept { return told_; }
    const cuinstr_outcome *operator->() const noexcept { return &told_; }

private:
    friend class guard;
    outcome(std::shared_ptr<detail::guard_owner> guard, const cuinstr_outcome &told) : guard_(std::move(guard)), told_(told) {}
    std::shared_ptr<detail::guard_owner> guard_;
    cuinstr_outcome told_;
};

// Arms a module for what is launched on a stream after this line. At its end, and that of its outcomes, what still runs is cancelled.
class guard {
public:
    guard(const module &module, CUstream_st *stream, const cuinstr_limits &limits) {
        cuinstr_guard handle;
        detail::check(cuinstr_arm(module.get(), stream, &limits, &handle));
        handle_ = std::make_shared<detail::guard_owner>(handle);
    }
    guard(const module &module, CUstream_st *stream, std::chrono::nanoseconds timeout) : guard(module, stream, cuinstr::timeout(timeout)) {}
    guard(guard &&) = default;
    guard &operator=(guard &&) = default;
    guard(const guard &) = delete;
    guard &operator=(const guard &) = delete;

    // The launch was made. `wait` says so, too, if nobody has.
    void launched() {
        if (handle_ && handle_->is_launched) return;
        detail::check(cuinstr_launched(get()));
        handle_->is_launched = true;
    }
    // Waits for the outcome: as long as the limits and the time to begin allow, or somebody cancels it.
    outcome wait() {
        cuinstr_outcome told = CUINSTR_OUTCOME_INIT;
        while (!ask(told, detail::piece_ns)) {
        }
        return outcome(handle_, told);
    }
    // Waits at most so long; null if it is not known by then.
    std::unique_ptr<outcome> wait_for(std::chrono::nanoseconds limit) {
        cuinstr_outcome told = CUINSTR_OUTCOME_INIT;
        return std::unique_ptr<outcome>(ask(told, detail::ns(limit)) ? new outcome(handle_, told) : nullptr);
    }
    // From any thread.
    void cancel() { detail::check(cuinstr_cancel(get())); }
    // Waits at most so long until the launch is paused, or over: ask which.
    void pause(std::chrono::nanoseconds within) {
        launched();
        detail::check(cuinstr_pause(get(), detail::ns(within)));
    }
    // Arms the next part in another stream than the launch's own: launch it there, then go on as after the constructor.
    void resume(CUstream_st *stream) {
        detail::check(cuinstr_resume(get(), stream));
        handle_->is_launched = false;
    }
    // Zero, which every call answers with CUINSTR_BAD_HANDLE, once it was moved from.
    cuinstr_guard get() const noexcept { return handle_ ? handle_->get() : cuinstr_guard{0}; }

private:
    bool ask(cuinstr_outcome &told, uint64_t limit_ns) {
        launched();
        const cuinstr_status status = cuinstr_wait(get(), limit_ns, &told);
        if (status == CUINSTR_PENDING) return false;
        detail::check(status);
        return true;
    }
    std::shared_ptr<detail::guard_owner> handle_;
};

}  // namespace cuinstr
#endif
