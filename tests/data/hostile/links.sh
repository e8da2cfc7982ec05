# Links in the directory that the sandbox may write to, and the kernel's own, which lead to files by no path at all.
cd /workspace || exit 1
number=0
lead_to() {
    number=$((number + 1))
    ln -s "$1" "link$number"
    [ -z "$(cat "link$number" 2> /dev/null; ls -A "link$number/" 2> /dev/null)" ] || echo "led to: $1"
    (echo x > "link$number") 2> /dev/null && echo "written: $1"
}
lead_to /etc/shadow
lead_to ../../../../../../../../etc/shadow
lead_to "$SECRET"
lead_to "../../../../../../../..$CANARY"
lead_to "/proc/self/root$SECRET"
lead_to "/proc/1/root"
lead_to "/proc/1/cwd"
lead_to "/proc/1/exe"
for descriptor in /proc/1/fd/*; do lead_to "$descriptor"; done
lead_to "/proc/1/map_files"
lead_to "/proc/self/fd/3"
lead_to "/proc/self/fd/7"
lead_to "/proc/self/cwd/../../../../../../etc/shadow"
ln "$SECRET" hard 2> /dev/null && echo "a hard link"
ln /usr/bin/env hard 2> /dev/null && echo "a hard link to a program"
exit 0
