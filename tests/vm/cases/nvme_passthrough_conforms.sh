# The body of tests that every path to a drive passes, on NVMe passthrough: with blocks of 512 bytes and of 4 KiB, and with
# a controller that splits what is longer than 8 KiB.
#guest {"disks": {"small": "32M", "large": "32M"}, "devices": [
#guest "nvme,serial=VM0,drive=small,mdts=1",
#guest "nvme,serial=VM1,id=large", "nvme-ns,drive=large,logical_block_size=4096,physical_block_size=4096"]}
set -eu

for drive in /sys/class/nvme/nvme*; do
    number=${drive##*nvme}
    serial=$(tr -d ' ' <$drive/serial)
    echo "$serial: nvme${number}n1, blocks of $(cat /sys/block/nvme${number}n1/queue/logical_block_size)"
    TESTDRIVE_TEST_PASSTHROUGH=/dev/ng${number}n1,/dev/nvme${number}n1,$serial \
        testdrive-conformance --ignored --exact --nocapture nvme_passthrough_conforms >/tmp/said 2>&1 || {
            cat /tmp/said; exit 1
        }
    cat /tmp/said
    grep -q '"registered_buffers":true' /tmp/said
    grep -q '"polled_completions":false' /tmp/said
done
