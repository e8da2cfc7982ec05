# What a stray script may try, and what it gets to see. The payload of bundles/demo.
try() {
    what=$1
    shift
    printf '%-26s ' "$what"
    "$@" 2>&1 | tail -n 1 | sed 's/^[a-z]*: //'
}

try "who am I"                id
try "which host is this"      hostname
try "process 1"               sh -c 'tr "\0" " " < /proc/1/cmdline | sed "s/ $//"; echo'
try "network interfaces"      sh -c 'tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d " "'
try "read the host's secrets" cat /etc/shadow
try "change a program"        touch /bin/sh
try "mount a file system"     mount -t tmpfs tmpfs /tmp
try "change a kernel setting" sh -c 'echo x > /proc/sys/kernel/core_pattern'
try "fill the disk"           sh -c 'dd if=/dev/zero of=/tmp/fill bs=64k 2>&1 | head -n 1'
try "compute 6 * 7"           expr 6 '*' 7
