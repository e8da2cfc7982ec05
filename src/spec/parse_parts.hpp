// The parts of a configuration that are read in one file and used in another.
#pragma once

#include "pinfold/spec.hpp"
#include "spec/reader.hpp"

namespace pinfold {

void read(const Reader& object, Process& process);
void read(const Reader& object, Linux& linux_);
void read(const Reader& object, Resources& resources);
void read(const Reader& object, Seccomp& seccomp);
void read(const Reader& object, IdMapping& mapping);

}  // namespace pinfold
