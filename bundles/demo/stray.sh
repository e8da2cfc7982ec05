# What a stray script may try, and what it gets to see.
try() {
    local what=$1
    shift
    printf '%-26s ' "$what"
    { "$@" 2>&1 || true; } | head -n 1 | sed 's/^[a-z\/]*: //'
}

try "who am I"                id -u
try "which host is this"      hostname
try "network interfaces"      sh -c 'tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d " "'
try "read the host's secrets" cat /etc/shadow
try "see who lives here"      ls /home
try "change a program"        touch /usr/bin/env
try "mount a file system"     mount -t tmpfs tmpfs /tmp
try "become root"             unshare --map-root-user id
try "get a disk"              mknod disk b 8 0
try "change a kernel setting" tee /proc/sys/kernel/core_pattern
try "fill the disk"           dd if=/dev/zero of=fill bs=64k
try "rename the host"         hostname stray
