# A capture on an older kernel (no large sub-buffers): it counts exactly, and is gone however it ends.
#guest {"disks": {"disk0": "64M"}, "devices": ["nvme,serial=VM0,drive=disk0"], "programs": ["dd"]}
set -eu

left() { ls /sys/kernel/tracing/instances | wc -l; }
gone() { [ "$(left)" -eq 0 ]; }

testdrive-engine capture nvme0n1 -o /tmp/a.rec >/tmp/a.json &
capture=$!
wait_until tells /tmp/a.json started
[ "$(left)" -eq 1 ]
/usr/bin/dd if=/dev/nvme0n1 of=/dev/null bs=4k count=503 iflag=direct 2>/dev/null
kill -INT $capture
wait $capture
gone
grep '"finished"' /tmp/a.json
grep -q '"counts":{"ios":503,' /tmp/a.json
grep -q '"events_lost":0' /tmp/a.json

testdrive-engine capture nvme0n1 -o /tmp/b.rec >/tmp/b.json &
capture=$!
wait_until tells /tmp/b.json started
kill -KILL $capture
wait $capture || true
wait_until gone
