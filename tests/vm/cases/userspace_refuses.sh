# A controller is not taken from the kernel while anything of it is in use, and nothing is changed by a refusal; also of runs that only read.
#guest {"disks": {"one": "32M", "two": "32M", "shared": "32M", "small": "32M"}, "programs": ["dd", "mkswap", "swapon", "swapoff", "losetup", "dmsetup"],
#guest  "devices": ["nvme,serial=VM0,id=both", "nvme-ns,drive=one,bus=both,nsid=1", "nvme-ns,drive=two,bus=both,nsid=2",
#guest   "nvme-subsys,id=subsystem,nqn=testdrive", "nvme,id=left,serial=VM1,subsys=subsystem",
#guest   "nvme,id=right,serial=VM1,subsys=subsystem", "nvme-ns,drive=shared,nsid=1,shared=on,bus=left",
#guest   "nvme,serial=VM2,drive=small,max_ioqpairs=1,msix_qsize=1"],
#guest  "modules": ["vfio-pci", "vfio_iommu_type1", "loop", "ext4", "dm-mod", "uio_pci_generic"], "iommu": true}
set -eu

address=$(address_of VM0)
name=$(basename $(ls -d /sys/bus/pci/devices/$address/nvme/nvme*))
run() { # URI SHARE-OF-READS ERASE
    rm -rf /tmp/x.rec
    echo '{"version": 1, "drive": {"uri": "'$1'", "erase": '$3'}, "output": "/tmp/x.rec", "phases": [
      {"kind": "synthetic", "read_share": '$2', "depth": 1, "ios": 10}]}' >/tmp/x.json
    status=0
    testdrive-engine run --job /tmp/x.json >/tmp/x.out || status=$?
}
refused() { # STATUS WORDS
    [ $status -eq $1 ] && grep -q "$2" /tmp/x.out || { echo "status $status, not $1: $2"; cat /tmp/x.out; exit 1; }
    [ "$(basename $(readlink /sys/bus/pci/devices/$address/driver))" = nvme ]
    /usr/bin/dd if=/dev/${name}n1 of=/dev/null bs=64k iflag=direct 2>/dev/null
    grep '"error"' /tmp/x.out
}
has_open() { ls -l /proc/$1/fd | grep -q " $2\$"; } # PROCESS NODE

run "pci:$address" 1 null; refused 2 'choose one with'
# What is listed can be used.
testdrive-engine drives | grep -F "\"pci:$address?namespace=1\"" | grep -F "\"pci:$address?namespace=2\""
run "pci:$address?namespace=3" 1 null; refused 2 'no such namespace'
run "pci:$address?namespace=1" 0 null; refused 3 'nobody consented'
run "pci:$address?namespace=1" 0 '"VM9"'; refused 3 "erase names 'VM9'"
run "pci:$address?namespace=1&noiommu=yes" 1 null; refused 2 'leave noiommu=yes out'
run "pci:0000:ff:1f.7" 1 null; [ $status -eq 2 ]
run "pci:0000:00:00.0" 1 null; refused 2 'is no NVMe controller'

# In use: the other namespace is mounted, or swap, or a mapped or loop device stands on it; and somebody merely has it open.
mke2fs -F /dev/${name}n2 >/dev/null
mkdir -p /mnt
mount -t ext4 -o ro /dev/${name}n2 /mnt
run "pci:$address?namespace=1" 1 null; refused 3 'mounted at /mnt'
umount /mnt
echo "0 2048 linear /dev/${name}n2 0" | dmsetup create held
run "pci:$address?namespace=1" 1 null; refused 3 'held by dm-0'
dmsetup remove held
/usr/bin/mkswap /dev/${name}n2 >/dev/null
/usr/bin/swapon /dev/${name}n2
run "pci:$address?namespace=1" 1 null; refused 3 'in use as swap'
run "pci:$address?namespace=1" 0 '"VM0"'; refused 3 'in use as swap'
/usr/bin/swapoff /dev/${name}n2
loop=$(/usr/bin/losetup --find --show /dev/${name}n2)
run "pci:$address?namespace=1" 1 null; refused 3 'held by loop'
/usr/bin/losetup -d $loop
sleep 1000 </dev/${name}n1 &
wait_until has_open $! /dev/${name}n1
run "pci:$address?namespace=1" 1 null; refused 3 'in use by process'
kill $!
wait $! || true
sleep 1000 </dev/$name &
wait_until has_open $! /dev/$name
run "pci:$address?namespace=1" 1 null; refused 3 'in use by process'
kill $!
wait $! || true
sleep 1000 3<>/dev/ng${name#nvme}n2 &
wait_until has_open $! /dev/ng${name#nvme}n2
run "pci:$address?namespace=1" 1 null; refused 3 'in use by process'
kill $!
wait $! || true
# Another drive's node under the name of one of the namespaces.
mv /dev/${name}n2 /dev/own
other=$(ls /sys/block | grep '^nvme[0-9]*n[0-9]*$' | grep -v ^$name | head -n 1)
mknod /dev/${name}n2 b $(tr : ' ' </sys/block/$other/dev)
run "pci:$address?namespace=1" 1 null; refused 3 "/dev/${name}n2 leads to device"
mv -f /dev/own /dev/${name}n2
# What only the other namespace carries takes no second consent, but what the named one carries does.
run "pci:$address?namespace=2" 0 '"VM0"'; refused 3 'a signature of swap'
run "pci:$address?namespace=1" 0 '"VM0"'; [ $status -eq 0 ]
# A sanitize would erase it, too, whichever was named.
rm -rf /tmp/x.rec
echo '{"version": 1, "drive": {"uri": "'pci:$address?namespace=1'", "erase": "VM0"}, "output": "/tmp/x.rec", "phases": [
  {"kind": "prepare", "method": "purge", "how": "sanitize"}]}' >/tmp/x.json
status=0
testdrive-engine run --job /tmp/x.json >/tmp/x.out || status=$?
refused 3 "${name}n2.*signature of swap"

# Another controller has the same namespace.
address=$(address_of VM1)
run "pci:$address" 1 null; [ $status -eq 3 ] && grep 'also reached through' /tmp/x.out
# Bound to vfio-pci by somebody: nothing can be looked at, until it is released.
address=$(address_of VM0)
echo vfio-pci >/sys/bus/pci/devices/$address/driver_override
echo $address >/sys/bus/pci/drivers/nvme/unbind
echo $address >/sys/bus/pci/drivers_probe
run "pci:$address?namespace=1" 1 null; [ $status -eq 3 ] && grep 'drives --release' /tmp/x.out
testdrive-engine drives --release $address
run "pci:$address?namespace=1" 1 null; [ $status -eq 0 ]

# With another driver for user space, as SPDK uses: it is left there, and no remedy leads in a circle. A note from before says nothing any more.
device=/sys/bus/pci/devices/$address
echo uio_pci_generic >$device/driver_override
echo $address >/sys/bus/pci/drivers/nvme/unbind
echo $address >/sys/bus/pci/drivers_probe
for note in no yes; do
    mkdir -p /run/testdrive
    [ $note = no ] || printf 'pid 1\ndriver nvme\ndriver_override \n' >/run/testdrive/pci-$address
    run "pci:$address?namespace=1" 1 null
    [ $status -eq 3 ] && grep "driver 'uio_pci_generic' has it" /tmp/x.out && ! grep -e --release /tmp/x.out
    [ -z "$(ls /run/testdrive)" ]
    [ $note = no ] || printf 'pid 1\ndriver nvme\ndriver_override \n' >/run/testdrive/pci-$address
    status=0; testdrive-engine drives --release $address >/tmp/x.out || status=$?
    [ $status -eq 3 ] && grep "driver 'uio_pci_generic' has it" /tmp/x.out
    [ -z "$(ls /run/testdrive)" ]
    [ "$(basename $(readlink $device/driver)) $(cat $device/driver_override)" = "uio_pci_generic uio_pci_generic" ]
done

# One queue pair, and one interrupt, which the admin queue takes: more is a mistake of usage, and leaves no recording.
address=$(address_of VM2)
small() { # URI THREADS STATUS
    rm -rf /tmp/x.rec
    echo '{"version": 1, "drive": {"uri": "'$1'"}, "output": "/tmp/x.rec", "phases": [
      {"kind": "synthetic", "depth": 4, "ios": 10, "threads": '$2'}]}' >/tmp/x.json
    status=0
    testdrive-engine run --job /tmp/x.json >/tmp/x.out || status=$?
    [ $status -eq $3 ] && [ "$(basename $(readlink /sys/bus/pci/devices/$address/driver))" = nvme ]
}
small "pci:$address" 2 2
grep 'has 1 ' /tmp/x.out && [ ! -e /tmp/x.rec ]
small "pci:$address?interrupts=yes" 1 2
grep 'too few for its queues' /tmp/x.out && [ ! -e /tmp/x.rec ]
small "pci:$address" 1 0
