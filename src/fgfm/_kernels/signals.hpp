// Ctrl-C in loops that take long.
#pragma once

#include <chrono>

#include <nanobind/nanobind.h>

namespace fgfm {

// Raise KeyboardInterrupt after Ctrl-C. Looks every tenth of a second, because it takes the GIL; only
// the main thread handles signals.
inline void check_signals() {
    using Clock = std::chrono::steady_clock;
    thread_local Clock::time_point next = Clock::now();
    const Clock::time_point now = Clock::now();
    if (now < next) return;
    next = now + std::chrono::milliseconds(100);
    nanobind::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
}

}  // namespace fgfm
