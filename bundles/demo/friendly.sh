# A script as most are. The others of the demo are not.
echo "$(id -un) on $(hostname) says: 6 * 7 is $((6 * 7))"
