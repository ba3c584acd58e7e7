#!/usr/bin/env bash
# Record a production-like workload: PostgreSQL under pgbench, with three bursts of trims in the middle of its
# transactions. The result is one text file of kernel trace events; README.md says what is in it and what this needs.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/lib/drive.sh"
source "$here/lib/postgres.sh"
source "$here/lib/capture.sh"

output=./pgbench-trim.trace.txt
work_parent=/var/tmp
drive_mib=10240
discard_max_kib=1024
rate_tps=700
clients=8
scale=120
archive_mib=1536
duration_s=90
warmup_s=45
buffer_mib=
burst_times_s=(25 50 70)

usage() {
    cat <<TEXT
Usage: make-sample.sh [options]      (as root)

  --output FILE           trace text to write             [$output]
  --work-dir DIR          where the backing file goes; a disk, not tmpfs   [$work_parent]
  --drive-mib N           size of the loop device, sparse [$drive_mib]
  --discard-max-kib N     largest discard request         [$discard_max_kib]
  --rate TPS              transactions per second         [$rate_tps]
  --clients N             pgbench connections             [$clients]
  --scale N               pgbench scale, about 15 MiB each [$scale]
  --archive-mib N         table dropped before each trim  [$archive_mib]
  --duration S            seconds recorded                [$duration_s]
  --warmup S              seconds of transactions before  [$warmup_s]
  --buffer-mib N          trace buffer for each CPU       [from the CPU count]
TEXT
}

fail() {
    echo "make-sample: $*" >&2
    exit 1
}

say() { printf '%s  %s\n' "$(date +%T)" "$*"; }

parse_arguments() {
    while (($#)); do
        case $1 in
            -h | --help) usage && exit 0 ;;
            --*) (($# >= 2)) || fail "$1 needs a value" ;;
            *) fail "'$1' is not an option; --help lists them" ;;
        esac
        case $1 in
            --output) output=$2 ;;
            --work-dir) work_parent=$2 ;;
            *)
                [[ $2 =~ ^[1-9][0-9]*$ ]] || fail "$1 takes a whole number above 0, not '$2'"
                case $1 in
                    --drive-mib) drive_mib=$2 ;;
                    --discard-max-kib) discard_max_kib=$2 ;;
                    --rate) rate_tps=$2 ;;
                    --clients) clients=$2 ;;
                    --scale) scale=$2 ;;
                    --archive-mib) archive_mib=$2 ;;
                    --duration) duration_s=$2 ;;
                    --warmup) warmup_s=$2 ;;
                    --buffer-mib) buffer_mib=$2 ;;
                    *) fail "'$1' is not an option; --help lists them" ;;
                esac
                ;;
        esac
        shift 2
    done
}

check_machine() {
    ((EUID == 0)) || fail "needs root for the loop device, the mount and the trace; run it with sudo"
    local tool
    for tool in losetup mkfs.ext4 fstrim runuser trace-cmd; do
        command -v "$tool" >/dev/null || fail "$tool not found; apt-get install e2fsprogs util-linux trace-cmd"
    done
    postgres_find
    ((duration_s > burst_times_s[-1])) \
        || fail "--duration $duration_s ends before the last burst at ${burst_times_s[-1]} s; use at least 90"
    # The database, the tables to drop, the write-ahead log and room for the filesystem itself.
    local needed_mib=$((scale * 16 + ${#burst_times_s[@]} * archive_mib + postgres_wal_max_mib + 1024))
    ((drive_mib >= needed_mib)) || fail "--drive-mib $drive_mib is too small for this data; use at least $needed_mib"
    [[ -d $work_parent ]] || fail "--work-dir $work_parent does not exist"
    work_parent=$(realpath "$work_parent")
    [[ $(stat -f -c %T "$work_parent") != tmpfs ]] || fail "--work-dir $work_parent is tmpfs; name a folder on a disk"
    local free_mib
    free_mib=$(df --output=avail -BM "$work_parent" | tail -1 | tr -dc 0-9)
    ((free_mib >= needed_mib)) || fail "$work_parent has $free_mib MiB free; $needed_mib are needed"
    [[ -d $(dirname "$output") ]] || fail "--output $output: its folder does not exist"
}

# Each step tolerates that its part was never started, so that one path serves success, failure and Ctrl-C.
cleanup() {
    local status=$?
    trap - EXIT
    trap '' INT TERM
    set +e
    [[ -n ${pgbench_pid:-} ]] && kill "$pgbench_pid" 2>/dev/null && wait "$pgbench_pid" 2>/dev/null
    postgres_stop
    capture_remove
    # The backing file stays for as long as something holds the drive.
    if drive_remove; then
        rm -rf --one-file-system "$work_dir"
    else
        echo "make-sample: $work_dir is still in use; unmount it, losetup -d ${drive_device:-its device}, remove it" >&2
        ((status != 0)) || status=1
    fi
    exit "$status"
}

sleep_until_s() { # seconds since the start of the recording
    local left_us=$((start_us + $1 * 1000000 - ${EPOCHREALTIME/./}))
    ((left_us <= 0)) || sleep "$((left_us / 1000000)).$(printf %06d $((left_us % 1000000)))"
}

# Whatever else runs on the machine is in the latencies too: shown, so that a disturbed recording can be told.
load_average() { cut -d' ' -f1-3 /proc/loadavg; }

elapsed_s() { echo $(((${EPOCHREALTIME/./} - start_us) / 1000000)); }

# The blocks of a dropped table become free for trimming once the journal has committed the drop. ext4 does that every
# 5 s by itself; waiting for it keeps out the storm of writes that a checkpoint or a sync would put beside the trims.
run_bursts() {
    local burst commit_interval_s=5 trimmed
    for burst in "${!burst_times_s[@]}"; do
        sleep_until_s $((burst_times_s[burst] - commit_interval_s - 2))
        say "second $(elapsed_s): dropping table archive_$burst"
        postgres_query "DROP TABLE archive_$burst"
        sleep_until_s "${burst_times_s[burst]}"
        trimmed=$(fstrim -v "$drive_mount")
        say "second $(elapsed_s): fstrim is back, ${trimmed#*: }"
    done
}

main() {
    parse_arguments "$@"
    check_machine
    trap cleanup EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    # PostgreSQL's user has to pass through this folder, which mktemp makes private.
    work_dir=$(mktemp -d "$work_parent/testdrive-sample.XXXXXX")
    chmod 711 "$work_dir"
    postgres_run test -x "$work_dir" || fail "the user postgres cannot enter $work_parent; give another --work-dir"

    drive_create "$work_dir" "$drive_mib" "$discard_max_kib"
    say "$drive_device: $drive_mib MiB, ext4, direct I/O on $work_dir"
    postgres_start "$drive_mount"
    say "filling: pgbench scale $scale and ${#burst_times_s[@]} tables of $archive_mib MiB"
    postgres_fill "$scale" "${#burst_times_s[@]}" "$archive_mib"
    # From a cold cache, so that the transactions read the drive; and with what was free before already trimmed, so
    # that each burst is for the table just dropped.
    postgres_restart_cold
    fstrim "$drive_mount"

    capture_prepare "$drive_device" "$buffer_mib"
    say "pgbench: $rate_tps transactions/s, $warmup_s s before the recording"
    postgres_pgbench "$rate_tps" "$clients" $((warmup_s + duration_s + 10)) >"$work_dir/pgbench.log" 2>&1 &
    pgbench_pid=$!
    sleep "$warmup_s"
    start_us=${EPOCHREALTIME/./}
    capture_start
    say "recording for $duration_s s; load average $(load_average)"
    run_bursts
    sleep_until_s "$duration_s"
    capture_stop
    say "recorded; load average $(load_average)"
    wait "$pgbench_pid" || fail "pgbench failed: $(tail -3 "$work_dir/pgbench.log")"
    pgbench_pid=
    grep -E 'transactions actually|latency|tps' "$work_dir/pgbench.log"

    capture_write "$work_dir" "$work_dir/trace.txt"
    mv "$work_dir/trace.txt" "$output"
    say "$output: $(wc -l <"$output") events, $(($(stat -c %s "$output") >> 20)) MiB"
    local recording=${output%.txt}
    echo "Import it with: testdrive import $output -o ${recording%.trace}.rec"
}

main "$@"
