# Recording block I/O with the kernel's trace events, in a trace instance of our own, so that neither another tracer
# nor we are disturbed. Sourced by make-sample.sh.

capture_events=(block_bio_queue block_rq_issue block_rq_complete)
capture_instance=
capture_entries=0

capture_prepare() { # device buffer_mib_per_cpu (empty: chosen here)
    local device_number root=/sys/kernel/tracing buffer_mib=$2 event
    mountpoint -q "$root" || mount -t tracefs nodev "$root" || fail "cannot mount tracefs at $root"
    mkdir "$root/instances/testdrive-sample-$$"
    capture_instance=$root/instances/testdrive-sample-$$
    echo 0 >"$capture_instance/tracing_on"

    # Everything stays in memory until the end, so that nothing of the recording reaches a disk while it runs. All three
    # events of an I/O take about 190 bytes; 128 MiB hold a whole recording even if a single CPU did all the work.
    if [[ -z $buffer_mib ]]; then
        buffer_mib=$((2048 / $(nproc --all)))
        ((buffer_mib <= 128)) || buffer_mib=128
    fi
    echo $((buffer_mib * 1024)) >"$capture_instance/buffer_size_kb" \
        || fail "no memory for $buffer_mib MiB of trace buffer for each CPU; give a smaller --buffer-mib"

    # One clock for all CPUs, of nanoseconds, that no time service moves.
    echo mono >"$capture_instance/trace_clock"
    device_number=$((0x$(stat -c %t "$1") << 20 | 0x$(stat -c %T "$1")))
    for event in "${capture_events[@]}"; do
        echo "dev == $device_number" >"$capture_instance/events/block/$event/filter"
        echo 1 >"$capture_instance/events/block/$event/enable"
    done
}

capture_start() { echo 1 >"$capture_instance/tracing_on"; }

# Stops, and refuses a recording with a hole in it: a lost completion looks like an I/O that never ended.
capture_stop() {
    echo 0 >"$capture_instance/tracing_on"
    local lost
    lost=$(awk -F': *' '/^(overrun|commit overrun|dropped events):/ { n += $2 } END { print n + 0 }' \
        "$capture_instance"/per_cpu/cpu*/stats)
    ((lost == 0)) || fail "the kernel lost $lost trace events; run again with a larger --buffer-mib"
    capture_entries=$(awk -F': *' '/^entries:/ { n += $2 } END { print n + 0 }' "$capture_instance"/per_cpu/cpu*/stats)
}

# The kernel's own text (trace_pipe) rounds times to microseconds, a large part of the time between the queueing of an
# I/O and its issue. The raw pages hold nanoseconds, and trace-cmd prints them.
capture_write() { # folder output
    local folder=$1 output=$2 cpu lines
    local pages=()
    for ((cpu = 0; cpu < $(nproc --all); cpu++)); do
        pages+=("$folder/cpu$cpu.raw")
        # dd ends with an error when the buffer is empty, which is how it is meant to end; what counts is checked below.
        dd if="$capture_instance/per_cpu/cpu$cpu/trace_pipe_raw" of="${pages[-1]}" bs=4096 iflag=nonblock \
            status=none 2>/dev/null || true
    done
    {
        trace-cmd restore -c -o "$folder/header.dat"
        trace-cmd restore -i "$folder/header.dat" -o "$folder/trace.dat" "${pages[@]}"
    } >"$folder/trace-cmd.log" 2>&1 || fail "trace-cmd failed: $(tail -3 "$folder/trace-cmd.log")"
    trace-cmd report -t "$folder/trace.dat" >"$output"
    lines=$(grep -c ': block_' "$output")
    ((lines == capture_entries)) || fail "$output has $lines events, but the kernel recorded $capture_entries"
}

capture_remove() {
    [[ -z $capture_instance ]] || rmdir "$capture_instance"
    capture_instance=
}
