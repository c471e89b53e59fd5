// HandleSignal: lets a program of ours answer a signal in ordinary code.
#pragma once

#include <functional>

namespace sluice {

// From now on calls `report` on a thread of its own whenever this process gets
// `signal`. Once for each signal. Does nothing and returns false if the program
// (Python, say) has a use for the signal already; one that finds a use later
// just takes it over.
bool HandleSignal(int signal, std::function<void()> report);

}  // namespace sluice
