# A drive taken from the kernel goes back whatever becomes of the run: after a kill, after a kill of the guardian too, by a command and
# by the run that comes next. While a run has it, or somebody else has it through VFIO, nobody gets it. One
# that is unplugged meanwhile ends the run as failed, and nothing waits for it.
#guest {"disks": {"disk0": "64M"}, "programs": ["dd"],
#guest  "devices": ["pcie-root-port,id=slot9,chassis=9,slot=9", "nvme,serial=VM0,drive=disk0,bus=slot9,id=hot"],
#guest  "modules": ["vfio-pci", "vfio_iommu_type1"], "iommu": true}
set -eu

address=$(cat /sys/class/nvme/nvme0/address)
driver() { basename "$(readlink /sys/bus/pci/devices/$address/driver)" 2>/dev/null || echo none; }
run() { # NAME SECONDS
    echo '{"version": 1, "drive": {"uri": "pci:'$address'", "erase": "VM0"}, "output": "/tmp/'$1'.rec", "phases": [
      {"kind": "synthetic", "read_share": 0, "depth": 4, "duration_ns": '$2'000000000}]}' >/tmp/$1.json
    testdrive-engine run --job /tmp/$1.json >/tmp/$1.out
}
runs() { tells /tmp/$1.out progress; }
is_back() { [ "$(driver)" = nvme ] && [ -e /dev/nvme0n1 ] && [ -z "$(ls /run/testdrive)" ]; }
reads() { /usr/bin/dd if=/dev/nvme0n1 of=/dev/null bs=64k iflag=direct 2>/dev/null; }
engine() { grep -l '^testdrive-engin' /proc/[0-9]*/comm | cut -d/ -f3; }
# One that has nothing open is over, and nobody may have waited for it.
guardian() {
    for process in $(grep -l '^testdrive-guard$' /proc/[0-9]*/comm | cut -d/ -f3); do
        [ -z "$(ls /proc/$process/fd 2>/dev/null)" ] || echo $process
    done
}
# Until it has come round to naming itself, it would be killed as an engine.
has_guardian() { [ -n "$(guardian)" ]; }
has_no_guardian() { ! has_guardian; }
kill_both() { # JOB
    wait_until has_guardian
    kill -KILL $(guardian) $(engine)
    wait $1 || true
    wait_until has_no_guardian
}

run first 600 &
wait_until runs first
[ "$(driver)" = vfio-pci ] && [ ! -e /dev/nvme0n1 ]
echo "it is listed all the same, with who has it"
testdrive-engine drives | grep "pci:$address" | grep 'vfio-pci has it, for process [0-9]* (testdrive-engin'
echo "a second run, and a release, while the first has it"
status=0; run second 1 || status=$?
[ $status -eq 3 ] && grep 'is in use by another run' /tmp/second.out
status=0; testdrive-engine drives --release $address >/tmp/release.out || status=$?
[ $status -eq 3 ] && cat /tmp/release.out
echo "the same where the user left no note, as a virtual machine would have none"
rm /run/testdrive/*
status=0; testdrive-engine drives --release $address >/tmp/release.out || status=$?
[ $status -eq 3 ] && grep 'in use by process [0-9]* (testdrive-engin' /tmp/release.out
[ -z "$(ls /run/testdrive)" ]
printf 'pid 1\ndriver nvme\ndriver_override \n' >/run/testdrive/pci-$address
status=0; run second 1 || status=$?
[ $status -eq 3 ] && grep 'in use by process [0-9]* (testdrive-engin' /tmp/second.out
rm /run/testdrive/*
[ "$(driver)" = vfio-pci ]
echo "killed: the guardian gives it back"
wait_until has_guardian
kill -KILL $(engine)
wait_until is_back
reads

echo "killed with its guardian: a command gives it back"
run third 600 &
wait_until runs third
kill_both $!
[ "$(driver)" = vfio-pci ] && [ -n "$(ls /run/testdrive)" ]
testdrive-engine drives | grep "nobody is seen to use it: 'testdrive drives --release $address' gives it back"
testdrive-engine drives --release pci:$address | tee /tmp/release.out
grep -q '"restored":true' /tmp/release.out
wait_until is_back
reads
testdrive-engine drives --release $address | grep '"restored":false'

echo "killed with its guardian: the next run gives it back first"
run fourth 600 &
wait_until runs fourth
kill_both $!
run fifth 1
grep '"finished"' /tmp/fifth.out
wait_until is_back
reads

echo "interrupted: in order"
run sixth 600 &
wait_until runs sixth
kill -INT $(engine)
wait $! || [ $? -eq 5 ]
is_back
reads

echo "unplugged: there is nothing to give back, and the run has not succeeded"
run seventh 600 &
wait_until runs seventh
echo '{"execute": "device_del", "arguments": {"id": "hot"}}' >/job/monitor.unplug.part
mv /job/monitor.unplug.part /job/monitor.unplug
asked_back() { dmesg | grep -q 'device request'; }
wait_until asked_back
kill -INT $(engine) || true
status=0; wait $! || status=$?
tail -n 1 /tmp/seventh.out
[ $status -eq 4 ] && grep 'drive_not_given_back' /tmp/seventh.out | grep 'is gone from its slot'
wait_until [ ! -e /sys/bus/pci/devices/$address ]
[ -z "$(ls /run/testdrive)" ]
