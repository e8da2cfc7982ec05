# Writes to what would change the host or the sandbox's own walls. Names each that could be written.
my @files = (qw(/proc/sys/kernel/core_pattern /proc/sys/kernel/hostname /proc/sys/kernel/modprobe
    /proc/sys/vm/drop_caches /proc/sys/net/ipv4/ip_forward /proc/sys/fs/binfmt_misc/register /proc/sysrq-trigger
    /proc/irq/default_smp_affinity /proc/1/mem /proc/1/oom_score_adj /proc/1/setgroups /proc/self/uid_map
    /proc/self/gid_map /proc/self/setgroups /proc/self/exe /proc/1/exe /proc/1/root/new /proc/self/attr/exec
    /sys/kernel/uevent_helper /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/release_agent /new /usr/new /usr/bin/env
    /bin/sh /etc/new /etc/passwd /etc/ld.so.preload /etc/hosts /lib/new /proc/new /var/new), $ENV{CANARY}, $ENV{SECRET});

sub put {
    my ($path, $text) = @_;
    open(my $file, ">", $path) and defined(syswrite($file, $text)) and print "written: $path\n";
}

put($_, "x") for @files;
put("/proc/self/oom_score_adj", "-1000");
unlink($_) and print "removed: $_\n" for "/usr/bin/env", "/etc/passwd", $ENV{CANARY};
rename("/etc", "/workspace/etc") and print "moved\n";
