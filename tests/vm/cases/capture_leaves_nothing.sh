# A capture on an older kernel (no large sub-buffers): it counts exactly, and is gone however it ends.
#guest {"disks": {"disk0": "64M"}, "devices": ["nvme,serial=VM0,drive=disk0"], "programs": ["dd"]}
set -eu

left() { ls /sys/kernel/tracing/instances | wc -l; }
started() { n=0; until grep -q '"started"' "$1" 2>/dev/null; do n=$((n + 1)); [ $n -lt 100 ]; sleep 0.1; done; }
gone() { n=0; until [ "$(left)" -eq 0 ]; do n=$((n + 1)); [ $n -lt 100 ] || exit 1; sleep 0.1; done; }

testdrive-engine capture nvme0n1 -o /tmp/a.rec >/tmp/a.json &
capture=$!
started /tmp/a.json
[ "$(left)" -eq 1 ]
/usr/bin/dd if=/dev/nvme0n1 of=/dev/null bs=4k count=503 iflag=direct 2>/dev/null
kill -INT $capture
wait $capture
[ "$(left)" -eq 0 ]
grep '"finished"' /tmp/a.json
grep -q '"counts":{"ios":503,' /tmp/a.json
grep -q '"events_lost":0' /tmp/a.json

testdrive-engine capture nvme0n1 -o /tmp/b.rec >/tmp/b.json &
capture=$!
started /tmp/b.json
kill -KILL $capture
wait $capture || true
gone
