# The body of tests that every path to a drive passes, on NVMe passthrough whose queues are polled, as they are on this kernel where
# somebody asks for it. The usual kernel of the guests does not survive that.
#guest {"disks": {"small": "32M", "large": "32M"}, "newer_kernel": true, "devices": [
#guest "nvme,serial=VM0,drive=small,mdts=1",
#guest "nvme,serial=VM1,id=large", "nvme-ns,drive=large,logical_block_size=4096,physical_block_size=4096"]}
set -eu

rmmod nvme
insmod /modules/nvme.ko poll_queues=1
wait_until [ -e /dev/ng0n1 -a -e /dev/ng1n1 ]
uname -r
for drive in /sys/class/nvme/nvme*; do
    number=${drive##*nvme}
    serial=$(tr -d ' ' <$drive/serial)
    TESTDRIVE_TEST_PASSTHROUGH=/dev/ng${number}n1?polled=yes,/dev/nvme${number}n1,$serial \
        testdrive-conformance --ignored --exact --nocapture nvme_passthrough_conforms | tee /tmp/said
    grep -q '1 passed' /tmp/said
    grep -q '"registered_buffers":true' /tmp/said
    grep -q '"polled_completions":true' /tmp/said
done
