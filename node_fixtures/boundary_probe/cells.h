// What both dialects share: a table of values on the C++ side, as SQLite would hold it, and the thread's CPU clock.
#ifndef BOUNDARY_PROBE_CELLS_H_
#define BOUNDARY_PROBE_CELLS_H_

#include <cstdint>
#include <string>
#include <vector>

#if defined(__APPLE__)
#include <mach/mach.h>
#else
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#endif

namespace probe {

enum class Kind : int { kInteger = 1, kFloat = 2, kText = 3, kBlob = 4, kNull = 5 };

struct Cell {
  Kind kind = Kind::kNull;
  int64_t integer = 0;
  double number = 0;
  std::string bytes;  // of a text (UTF-8) or a blob
};

struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<Cell>> rows;
};

struct ThreadTimes {
  double user_us;
  double system_us;
};

// CPU time of the calling thread, in nanoseconds: exact, where user and system time are divided by clock ticks.
inline int64_t ReadThreadCpuNs() {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * int64_t{1000000000} + now.tv_nsec;
}

// CPU time of the calling thread.
inline ThreadTimes ReadThreadTimes() {
#if defined(__APPLE__)
  mach_msg_type_number_t count = THREAD_BASIC_INFO_COUNT;
  thread_basic_info_data_t info;
  mach_port_t self = mach_thread_self();
  thread_info(self, THREAD_BASIC_INFO, reinterpret_cast<thread_info_t>(&info), &count);
  mach_port_deallocate(mach_task_self(), self);
  return {info.user_time.seconds * 1e6 + info.user_time.microseconds,
          info.system_time.seconds * 1e6 + info.system_time.microseconds};
#else
  // What getrusage knows of a running thread is up to a tick old (4 ms of a pass of 40), unless its clock was just
  // asked: that brings the kernel's account up to date.
  ReadThreadCpuNs();
  struct rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return {usage.ru_utime.tv_sec * 1e6 + usage.ru_utime.tv_usec,
          usage.ru_stime.tv_sec * 1e6 + usage.ru_stime.tv_usec};
#endif
}

}  // namespace probe

#endif  // BOUNDARY_PROBE_CELLS_H_
