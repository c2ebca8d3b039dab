#!/bin/sh
# Takes the place of ssh for mpirun: runs a command in the namespace of the rank whose management address is given, under a
# host name of its own.
host=$1
shift
rank=$((${host##*.} - 1))
exec nsenter --net="/run/netns/n$rank" unshare --uts sh -c "hostname lab$rank; $*"
