# Minds no signal, and does not end.
trap '' HUP INT QUIT TERM USR1 USR2 ALRM
while :; do :; done
