// Ctrl-C in loops that take long.
#pragma once

#include <chrono>
#include <thread>

#include <nanobind/nanobind.h>

namespace fgfm {

// The thread that imports the module, as a rule the main one, which alone handles signals.
inline const std::thread::id IMPORTING_THREAD = std::this_thread::get_id();

// Raise KeyboardInterrupt after Ctrl-C. Looks every tenth of a second, because it takes the GIL. Other
// threads must not wait for the GIL, because they may do so while Python exits.
inline void check_signals() {
    using Clock = std::chrono::steady_clock;
    if (std::this_thread::get_id() != IMPORTING_THREAD) return;
    static Clock::time_point next = Clock::now();
    const Clock::time_point now = Clock::now();
    if (now < next) return;
    next = now + std::chrono::milliseconds(100);
    nanobind::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
}

}  // namespace fgfm
