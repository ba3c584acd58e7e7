# The body of tests that every path to a drive passes, on the user-space driver: with blocks of 512 bytes and of 4 KiB, polled and with
# interrupts, and with a controller that splits what is longer than 32 KiB.
#guest {"disks": {"small": "32M", "large": "32M"}, "devices": [
#guest "nvme,serial=VM0,drive=small,mdts=3",
#guest "nvme,serial=VM1,id=large", "nvme-ns,drive=large,logical_block_size=4096,physical_block_size=4096"],
#guest "modules": ["vfio-pci", "vfio_iommu_type1"], "iommu": true}
set -eu

for drive in VM0 VM1; do
    address=$(address_of $drive)
    for options in "interrupts=no" "interrupts=yes"; do
        TESTDRIVE_TEST_PCI="pci:$address?$options,$drive" \
            testdrive-conformance --ignored --exact --nocapture a_controller_driven_from_user_space_conforms | tee /tmp/said
        # A name that no test has would be no failure.
        grep -q '1 passed' /tmp/said
        [ "$(basename $(readlink /sys/bus/pci/devices/$address/driver))" = nvme ]
    done
done
