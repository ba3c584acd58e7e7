# Without an IOMMU the user-space driver is had only by its option, where the kernel allows it and huge pages are free; it conforms then,
# and neither its end nor a kill leaves the drive or the pages behind.
#guest {"disks": {"small": "32M", "large": "32M"}, "devices": [
#guest "nvme,serial=VM0,drive=small,mdts=3",
#guest "nvme,serial=VM1,id=large", "nvme-ns,drive=large,logical_block_size=4096,physical_block_size=4096"],
#guest "modules": ["vfio-pci"], "programs": ["dd"], "unsafe_vfio": true}
set -eu

allow=/sys/module/vfio/parameters/enable_unsafe_noiommu_mode
address=$(address_of VM0)
run() { # OPTIONS SECONDS
    rm -rf /tmp/x.rec
    echo '{"version": 1, "drive": {"uri": "pci:'$address$1'", "erase": "VM0"}, "output": "/tmp/x.rec", "phases": [
      {"kind": "synthetic", "read_share": 0.5, "trim_share": 0.1, "block_bytes": 524288, "alignment_bytes": 4096, "depth": 8,
       "duration_ns": '$2'000000000}]}' >/tmp/x.json
    status=0
    testdrive-engine run --job /tmp/x.json >/tmp/x.out || status=$?
}
refused() { # STATUS WORDS
    [ $status -eq $1 ] && grep -q "$2" /tmp/x.out || { echo "status $status, not $1: $2"; cat /tmp/x.out; exit 1; }
    is_back
    grep '"error"' /tmp/x.out
}
is_back() {
    [ "$(basename $(readlink /sys/bus/pci/devices/$address/driver))" = nvme ]
    wait_until reads
}
reads() { /usr/bin/dd if=$(ls /dev/nvme*n1 | head -n 1) of=/dev/null bs=64k count=64 iflag=direct 2>/dev/null; }
free_pages() { awk '/^HugePages_Free/ { print $2 }' /proc/meminfo; }
all_are_free() { [ $(free_pages) -eq 64 ]; }
# Until the guardian has come round to naming itself, it would be killed as an engine.
has_guardian() { grep -q '^testdrive-guard$' /proc/[0-9]*/comm; }
driver_is_back() { [ "$(basename "$(readlink /sys/bus/pci/devices/$address/driver)")" = nvme ]; }

run '' 1; refused 2 'has no IOMMU group'
[ "$(cat $allow)" = N ]
run '?noiommu=yes' 1; refused 2 'does not let VFIO do without an IOMMU'
echo Y >$allow
run '?noiommu=yes' 1; refused 4 'huge pages of 2 MiB are not free'
echo 64 >/proc/sys/vm/nr_hugepages
all_are_free
run '?noiommu=yes' 1; [ $status -eq 0 ]
all_are_free
is_back

for drive in VM0 VM1; do
    address=$(address_of $drive)
    for interrupts in no yes; do
        TESTDRIVE_TEST_PCI="pci:$address?noiommu=yes&interrupts=$interrupts,$drive" \
            testdrive-conformance --ignored --exact --nocapture a_controller_driven_from_user_space_conforms >/tmp/said 2>&1 || {
                cat /tmp/said; exit 1
            }
        grep 'test result: ok. 1 passed' /tmp/said
        is_back
        all_are_free
    done
done

address=$(address_of VM0)
rm /tmp/x.out
run '?noiommu=yes' 600 &
wait_until tells /tmp/x.out progress
[ $(free_pages) -lt 64 ]
wait_until has_guardian
kill -KILL $(grep -l '^testdrive-engin' /proc/[0-9]*/comm | cut -d/ -f3)
wait_until driver_is_back
wait_until all_are_free
is_back
