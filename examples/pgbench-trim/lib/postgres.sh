# A PostgreSQL server of our own, without network, run as the user postgres. Sourced by make-sample.sh.

postgres_wal_max_mib=1024
postgres_bin=
postgres_data=
postgres_socket=

postgres_find() {
    local candidate
    while read -r candidate; do
        [[ ! -x $candidate/initdb || ! -x $candidate/pgbench ]] || postgres_bin=$candidate
    done < <(printf '%s\n' /usr/lib/postgresql/*/bin | sort -V)
    [[ -n $postgres_bin ]] \
        || fail "PostgreSQL not found under /usr/lib/postgresql; apt-get install postgresql postgresql-contrib"
    id postgres >/dev/null 2>&1 || fail "there is no user postgres; apt-get install postgresql"
}

# From / because the user postgres may not enter the folder that the script was started in.
postgres_run() { (cd / && exec runuser -u postgres -- "$@"); }

postgres_query() {
    postgres_run "$postgres_bin/psql" -qXAt -v ON_ERROR_STOP=1 -h "$postgres_socket" -d postgres -c "$1"
}

postgres_start() { # mount point
    mkdir "$1/data" "$1/run"
    chown postgres: "$1/data" "$1/run"
    postgres_socket=$1/run
    postgres_run "$postgres_bin/initdb" -D "$1/data" -A trust --no-instructions --no-sync >/dev/null
    postgres_data=$1/data
    postgres_settings | postgres_run tee -a "$postgres_data/postgresql.conf" >/dev/null
    postgres_boot
}

# Durable as in production (fsync and full_page_writes on). The buffer is far smaller than the data, so that there are
# reads. Data pages are written all along: checkpoints come every 30 s and are spread over the time between, and what
# backends write out themselves is passed on to the drive at once, not gathered by the page cache into a storm.
postgres_settings() {
    cat <<TEXT
listen_addresses = ''
unix_socket_directories = '$postgres_socket'
max_connections = 50
shared_buffers = 64MB
fsync = on
synchronous_commit = on
full_page_writes = on
wal_level = minimal
max_wal_senders = 0
max_wal_size = ${postgres_wal_max_mib}MB
min_wal_size = ${postgres_wal_max_mib}MB
checkpoint_timeout = 30s
checkpoint_completion_target = 0.9
backend_flush_after = 256kB
log_checkpoints = on
TEXT
}

postgres_boot() {
    postgres_run "$postgres_bin/pg_ctl" -D "$postgres_data" -l "$postgres_data/server.log" -w -t 120 start >/dev/null \
        || fail "PostgreSQL did not start: $(tail -3 "$postgres_data/server.log")"
}

postgres_stop() {
    [[ -n $postgres_data && -f $postgres_data/postmaster.pid ]] || return 0
    postgres_run "$postgres_bin/pg_ctl" -D "$postgres_data" -m fast -w -t 120 stop >/dev/null \
        || postgres_run "$postgres_bin/pg_ctl" -D "$postgres_data" -m immediate -w -t 30 stop >/dev/null
}

# The archives are filled at the same time, so that their extents lie between each other: what a drop frees later is in
# many pieces, as on a filesystem that has been in use.
postgres_fill() { # scale archives archive_mib
    local archive pid pids=()
    for ((archive = 0; archive < $2; archive++)); do
        # About 7 rows of 1 KiB to a page of 8 KiB.
        postgres_query "CREATE TABLE archive_$archive AS SELECT n AS id, repeat(md5(n::text), 32) AS payload
            FROM generate_series(1, $3 * 128 * 7) AS n" &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid" || fail "filling the tables failed; see the message above"; done
    postgres_run "$postgres_bin/pgbench" -h "$postgres_socket" -i -q -s "$1" postgres >/dev/null 2>&1 \
        || fail "pgbench could not fill its tables at scale $1"
    # What the server would otherwise do by itself in the middle of the recording, over every page.
    postgres_query "VACUUM (ANALYZE)"
}

# The write-ahead log is brought to its full size first: a log that still grows writes zeroes ahead of each segment,
# which a server that has run for a day no longer does.
postgres_restart_cold() {
    local segment segments=$((postgres_wal_max_mib / 16))
    for ((segment = 0; segment < segments; segment++)); do
        postgres_query "SELECT pg_logical_emit_message(false, 'fill', 'x')" >/dev/null
        postgres_query "SELECT pg_switch_wal()" >/dev/null
    done
    postgres_query CHECKPOINT
    postgres_stop
    sync -f "$postgres_data"
    echo 3 >/proc/sys/vm/drop_caches
    postgres_boot
}

# --rate is an open load: a slow transaction does not hold back those that follow, as with real users.
postgres_pgbench() { # rate_tps clients duration_s
    exec runuser -u postgres -- "$postgres_bin/pgbench" -h "$postgres_socket" -n -M prepared -c "$2" -j 1 \
        --rate "$1" -T "$3" --random-seed=1 postgres </dev/null
}
