// What a program of ours does when signals come.
#pragma once

#include <functional>

namespace sluice {

// From now on calls `report` on a thread of its own whenever this process gets
// `signal`. Once for each signal. Does nothing and returns false if the program
// (Python, say) has a use for the signal already; one that finds a use later
// just takes it over.
bool HandleSignal(int signal, std::function<void()> report);

// From now on `signal` does nothing to this process, unless the program has a
// use for it.
void IgnoreSignal(int signal);

// While it lives, SIGTERM does not end the process but is noted here. Only if
// it is made on the main thread, which can then end the program, and if the
// program has no use for SIGTERM itself; else it does nothing.
class TerminationNotice {
 public:
  TerminationNotice();
  ~TerminationNotice();
  TerminationNotice(const TerminationNotice&) = delete;
  TerminationNotice& operator=(const TerminationNotice&) = delete;

  bool arrived() const;

 private:
  bool active_ = false;
};

}  // namespace sluice
