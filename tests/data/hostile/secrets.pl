# Looks for what is the host's in every place where a container has once leaked it. Names each that shows anything.
my @host = (qw(/etc/shadow /etc/gshadow /etc/sudoers /etc/machine-id /etc/hostname /etc/resolv.conf /etc/ssh /etc/apt
    /root /root/.ssh /root/.bashrc /home /var/lib /var/log /run /boot /srv /opt /mnt /media), $ENV{SECRET});
my @ways = ("/proc/1/root", "/proc/1/cwd", "/proc/self/root", "/proc/thread-self/root", "..", "../../..");
my @kernel = qw(/proc/1/environ /proc/1/mem /proc/1/maps /proc/1/auxv /proc/interrupts /proc/kcore /proc/keys
    /proc/timer_list /proc/kmsg /proc/sched_debug /proc/scsi/scsi /proc/acpi/wakeup /proc/kpagecount /sys/kernel
    /sys/fs/cgroup /sys/class/net /dev/mem /dev/kmem /dev/port /dev/kmsg /dev/vda /dev/sda /dev/nvme0n1 /dev/loop0
    /dev/fuse /dev/kvm /dev/net/tun);

sub look {
    my ($path, $bytes) = @_;
    if (opendir(my $directory, $path)) { print "seen: $path\n" if grep { !/^\.\.?$/ } readdir($directory) }
    elsif (open(my $file, "<", $path)) { print "seen: $path\n" if sysread($file, $bytes, 64) && $bytes =~ /[^\0]/ }
}

look($_) for @host, @kernel;
for my $way (@ways) { look("$way$_") for @host }
print "a block device: $_\n" for grep { -b } glob("/dev/*");

# Of all processes, what they were started with; and whatever descriptor was forgotten.
for my $file (glob("/proc/[0-9]*/environ"), glob("/proc/[0-9]*/cmdline")) {
    open(my $words, "<", $file) or next;
    local $/;
    print "seen: $file\n" if <$words> =~ /secret of the host/;
}
for my $number (3 .. 255) {
    my $bytes;
    open(my $copy, "<&=", $number) and sysread($copy, $bytes, 64) and print "descriptor $number: $bytes\n";
}
