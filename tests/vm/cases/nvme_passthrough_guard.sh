# What speaks against a block device speaks against passthrough to it, and the other way round; a sanitize looks at the other namespaces,
# too. Another drive's node under this one's name is not looked at in its place. After a kill the drive is free, and its next run works.
# Where a run ends with writes in flight, nobody gets the drive until they have ended. A namespace with metadata is formatted without.
#guest {"disks": {"disk0": "8M", "first": "8M", "second": "8M", "meta": "8M"}, "modules": ["ext4", "dm-mod"], "programs": ["dmsetup"], "devices": [
#guest "nvme,id=three,serial=VM2", "nvme-ns,drive=meta,nsid=1,bus=three,ms=8",
#guest "nvme,serial=VM0,drive=disk0", "nvme,id=two,serial=VM1",
#guest "nvme-ns,drive=first,nsid=1,bus=two", "nvme-ns,drive=second,nsid=2,bus=two"]}
set -eu

run() {
    echo '{"version": 1, "drive": {"uri": "'$1'", "erase": "'$2'", "erase_signatures": true}, "output": "/tmp/'$3'.rec",
      "phases": ['"$4"']}' >/tmp/job.json
    testdrive-engine run --job /tmp/job.json >/tmp/$3.json
}
# The run that is refused for this reason, and changes nothing.
refused() {
    before=$(dd if=$1 bs=1M 2>/dev/null | md5sum)
    status=0; run "$2" "$3" refused "$4" || status=$?
    tail -n 1 /tmp/refused.json
    [ $status -eq 3 ]
    grep -q "$5" /tmp/refused.json
    blockdev --flushbufs $1 || true
    [ "$(dd if=$1 bs=1M 2>/dev/null | md5sum)" = "$before" ]
}
# Which is which depends on who was found first.
one=$(basename $(dirname $(grep -l VM0 /sys/class/nvme/*/serial))); two=$(basename $(dirname $(grep -l VM1 /sys/class/nvme/*/serial)))
one=${one#nvme}; two=${two#nvme}
write='{"kind": "synthetic", "read_share": 0, "ios": 1000}'

mke2fs -F /dev/nvme${one}n1 >/dev/null
mkdir -p /mnt
mount -t ext4 -o ro /dev/nvme${one}n1 /mnt
refused /dev/nvme${one}n1 /dev/ng${one}n1 VM0 "$write" "mounted at /mnt"
umount /mnt
refused /dev/nvme${one}n1 /dev/ng${one}n1 WRONG "$write" "this is 'VM0'"
has_open() { ls -l /proc/$1/fd | grep -q " $2\$"; } # PROCESS NODE
sleep 1000 3<>/dev/ng${one}n1 &
wait_until has_open $! /dev/ng${one}n1
refused /dev/nvme${one}n1 /dev/ng${one}n1 VM0 "$write" "in use by process $!"
refused /dev/nvme${one}n1 /dev/nvme${one}n1 VM0 "$write" "in use by process $!"
kill $!
wait $! || true

# Consent, claim and signatures of one drive, and commands to another: a container's /dev, or one that was laid out by hand.
mv /dev/nvme${one}n1 /dev/own
mknod /dev/nvme${one}n1 b $(tr : ' ' </sys/block/nvme${two}n1/dev)
for serial in VM0 VM1; do
    refused /dev/own /dev/ng${one}n1 $serial "$write" "/dev/nvme${one}n1 leads to device"
done
mv -f /dev/own /dev/nvme${one}n1

mke2fs -F /dev/nvme${two}n2 >/dev/null
mount -t ext4 -o ro /dev/nvme${two}n2 /mnt
refused /dev/nvme${two}n2 /dev/ng${two}n1 VM1 '{"kind": "prepare", "method": "purge", "how": "sanitize"}' \
    "other namespace nvme${two}n2: it is mounted at /mnt"
# A format of this drive is of one namespace: the mounted one keeps its bytes.
before=$(dd if=/dev/nvme${two}n2 bs=1M 2>/dev/null | md5sum)
run /dev/ng${two}n1 VM1 format '{"kind": "prepare", "method": "format"}'
blockdev --flushbufs /dev/nvme${two}n2
[ "$(dd if=/dev/nvme${two}n2 bs=1M 2>/dev/null | md5sum)" = "$before" ]
umount /mnt

# While a run has it, neither path gives it to another; a kill gives it back.
run /dev/ng${one}n1 VM0 killed '{"kind": "synthetic", "read_share": 0, "duration_ns": 100000000000}' &
wait_until tells /tmp/killed.json progress
for path in /dev/ng${one}n1 /dev/nvme${one}n1; do
    status=0; run $path VM0 second "$write" || status=$?
    [ $status -eq 3 ]
done
kill -KILL $(pidof testdrive-engine)
wait $! || true
run /dev/ng${one}n1 VM0 after "$write"
grep -q '"status":"complete"' /tmp/after.json
dd if=/dev/nvme${one}n1 of=/dev/null bs=1M 2>/dev/null

# A drive that stops answering: the run gives it up, and its writes are still on their way.
monitor() { echo "$2" >/job/monitor.$1.part; mv /job/monitor.$1.part /job/monitor.$1; wait_until [ -e /job/monitor.$1.done ]; }
throttle() {
    limits='"bps": '$2', "bps_rd": 0, "bps_wr": 0, "iops": 0, "iops_rd": 0, "iops_wr": 0'
    monitor $1 '{"execute": "block_set_io_throttle", "arguments": {"device": "disk0", '"$limits"'}}'
}
claim() { dmsetup create other --table "0 8 linear /dev/nvme${one}n1 0" 2>&1; }
# So long that a host which is merely busy is not taken for such a drive, and less than the kernel's 30 s.
in_flight='"io_timeout_s": 10, "phases": [{"kind": "synthetic", "read_share": 0, "depth": 4, "duration_ns": 100000000000}]'
for path in /dev/ng${one}n1 /dev/nvme${one}n1; do
    echo '{"version": 1, "drive": {"uri": "'$path'", "erase": "VM0"}, "output": "'/tmp$path.rec'", '"$in_flight"'}' >/tmp/stuck.json
    mkdir -p /tmp/dev
    # What the run before has told is no progress of this one.
    rm -f /tmp/stuck.out
    testdrive-engine run --job /tmp/stuck.json >/tmp/stuck.out &
    wait_until tells /tmp/stuck.out progress
    throttle stop${path#/dev/} 1
    status=0; wait $! || status=$?
    [ $status -eq 4 ]
    is_free=no; ! claim || is_free=yes
    # Also a guest that ends waits for its drives.
    throttle go${path#/dev/} 0
    [ $is_free = no ] || { echo "$path is free with writes in flight"; exit 1; }
    wait_until claim
    dmsetup remove other
done

# Of a namespace with metadata nothing is read or written by passthrough, but it is formatted without.
meta=$(basename $(dirname $(grep -l VM2 /sys/class/nvme/*/serial))); meta=/dev/ng${meta#nvme}n1
format='{"kind": "prepare", "method": "format", "logical_block_bytes": 4096}'
for phases in '{"kind": "synthetic", "ios": 10}' "$write, $format"; do
    status=0; run $meta VM2 metadata "$phases" || status=$?
    tail -n 1 /tmp/metadata.json
    [ $status -eq 2 ] && grep -q "formatted with metadata" /tmp/metadata.json
done
run $meta VM2 formatted "$format, $write"
grep -q '"status":"complete"' /tmp/formatted.json
