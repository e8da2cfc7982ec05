# Links in the directory that it may write to, and the kernel's own, which lead to files by no path at all. Names each
# that leads to anything.
chdir("/workspace");
my $up = "../../../../../../../..";
my @targets = ("/etc/shadow", "$up/etc/shadow", $ENV{SECRET}, "$up$ENV{CANARY}", "/proc/self/root$ENV{SECRET}",
    "/proc/self/cwd/$up/etc/shadow", "/proc/1/root", "/proc/1/root/etc", "/proc/1/cwd", "/proc/1/exe",
    "/proc/1/map_files", "/proc/self/fd/3", "/proc/self/fd/7", glob("/proc/1/fd/*"), glob("/proc/1/task/1/fd/*"));

for my $target (@targets) {
    unlink("link");
    symlink($target, "link");
    if (opendir(my $directory, "link")) { print "led to: $target\n" if grep { !/^\.\.?$/ } readdir($directory) }
    elsif (open(my $file, "<", "link")) { print "led to: $target\n" }
    if (open(my $file, ">>", "link")) { print "written: $target\n" }
}
link($_, "hard") and print "a hard link: $_\n" for $ENV{SECRET}, "/usr/bin/env", "/proc/1/exe", "/etc/passwd";
