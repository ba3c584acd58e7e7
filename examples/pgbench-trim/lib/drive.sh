# The drive of the sample: ext4 on a loop device over a sparse file. Sourced by make-sample.sh.

drive_device=
drive_mount=

# Direct I/O on the backing file: otherwise the host's page cache would answer the reads and take the writes, and the
# recorded latencies would be those of memory.
drive_create() { # folder size_mib discard_max_kib
    local folder=$1 size_mib=$2 discard_max_kib=$3 queue
    truncate -s "${size_mib}M" "$folder/drive.img"
    drive_device=$(losetup --find --show --direct-io=on "$folder/drive.img")
    queue=/sys/block/${drive_device#/dev/}/queue
    (($(<"/sys/block/${drive_device#/dev/}/loop/dio") == 1)) \
        || fail "$folder does not take direct I/O; give a --work-dir on another filesystem"

    # A loop device takes 4 GiB in one discard. Many drives take far less, and operators lower the limit further on those
    # that stall on large ones: then a trim is a train of requests that competes with other I/O for the queue.
    (($(<"$queue/discard_max_bytes") > 0)) || fail "$folder cannot punch holes; give a --work-dir on ext4 or XFS"
    echo $((discard_max_kib * 1024)) >"$queue/discard_max_bytes"

    # Everything initialised now: the kernel's lazy initialisation would write in the background of the recording.
    mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 "$drive_device"
    mkdir "$folder/mount"
    mount -o noatime,nodiscard "$drive_device" "$folder/mount"
    drive_mount=$folder/mount
}

drive_remove() {
    [[ -z $drive_mount ]] || umount "$drive_mount" || return
    drive_mount=
    [[ -z $drive_device ]] || losetup -d "$drive_device" || return
    drive_device=
}
