// All points of one scenario, or as many of them as there is time for.
#pragma once

#include "world.hpp"

namespace pinfold::faults {

// Tries faults at the calls that the verb makes; CHECKs that none has done harm, and counts them as "points".
void sweep(const Scenario& scenario);

}  // namespace pinfold::faults
