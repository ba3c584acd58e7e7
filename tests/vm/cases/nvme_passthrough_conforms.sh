# The body of tests that every path to a drive passes, on NVMe passthrough: with blocks of 512 bytes and of 4 KiB, and with
# a controller that splits what is longer than 8 KiB. This kernel ends when it polls for passthrough commands of which two fail
# together: its queues for polling are left alone.
#guest {"disks": {"small": "32M", "large": "32M"}, "devices": [
#guest "nvme,serial=VM0,drive=small,mdts=1",
#guest "nvme,serial=VM1,id=large", "nvme-ns,drive=large,logical_block_size=4096,physical_block_size=4096"]}
set -eu

conforms() { # SERIAL POLL-QUEUES
    for drive in /sys/class/nvme/nvme*; do
        number=${drive##*nvme}
        [ "$(tr -d ' ' <$drive/serial)" = $1 ] || continue
        echo "$1: nvme${number}n1, blocks of $(cat /sys/block/nvme${number}n1/queue/logical_block_size)"
        TESTDRIVE_TEST_PASSTHROUGH=/dev/ng${number}n1,/dev/nvme${number}n1,$1 \
            testdrive-conformance --ignored --exact --nocapture nvme_passthrough_conforms >/tmp/said 2>&1 || {
                cat /tmp/said; exit 1
            }
        cat /tmp/said
        grep -q '"registered_buffers":true' /tmp/said
        grep -q '"poll_queues":'$2',"polled_completions":false' /tmp/said
    done
}
conforms VM0 false
conforms VM1 false

rmmod nvme
insmod /modules/nvme.ko poll_queues=1
wait_until [ -e /dev/ng0n1 -a -e /dev/ng1n1 ]
conforms VM0 true
