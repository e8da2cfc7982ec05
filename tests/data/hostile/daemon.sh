# Leaves processes behind that nobody waits for: sessions of their own, streams and the work directory let go of.
for _ in 1 2 3; do
    (setsid sh -c 'trap "" HUP TERM; cd /; sleep 1000 & exec sleep 1000' < /dev/null > /dev/null 2>&1 &)
done
(setsid sleep 1000 &)  # this one keeps standard output open
until [ "$(grep -c . /proc/[0-9]*/comm | wc -l)" -ge 6 ]; do :; done
echo left
exit 4
