// Says which line does not hold, and ends the program.
#pragma once

#include <cstdio>
#include <cstdlib>

#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);    \
      std::exit(1);                                                           \
    }                                                                         \
  } while (false)

// Something at an address, which nobody reads.
template <typename T>
T* at(unsigned long long address) {
  return reinterpret_cast<T*>(address);
}
