// The least that a static program with a C library does: what `--version` is compared with.
#include <cstdio>

int main() { return std::puts("hello") < 0 ? 1 : 0; }
